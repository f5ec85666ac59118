package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"reflect"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// PrintJSON prints v for programs to read. Characters that could drive a
// terminal or deceive a reader are written as \u escapes: the same JSON, and
// safe to look at.
func PrintJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// PrintJSONLine is PrintJSON on one line.
func PrintJSONLine(w io.Writer, v any) error { return writeJSON(w, v, "") }

func writeJSON(w io.Writer, v any, indent string) error {
	text, err := encodeJSON(v, "", indent)
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}

// encodeJSON returns v as JSON without a final newline, with prefix before all lines
// except the first.
func encodeJSON(v any, prefix, indent string) ([]byte, error) {
	text, err := strictjson.Encode(v)
	if err == nil && prefix+indent != "" {
		var b bytes.Buffer
		err = json.Indent(&b, text, prefix, indent)
		text = b.Bytes()
	}
	return visible(text), err
}

// PrintJSONList is PrintJSON for an object with a list called name, which is never
// completely in memory, and, unless value is nil, with a second member called then.
func PrintJSONList[T any](w io.Writer, name string, list iter.Seq[T], then string, value any) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "{\n  %q: [", name)
	end := "]"
	for v := range list {
		text, err := encodeJSON(v, "    ", "  ")
		if err != nil {
			return fmt.Errorf("printing JSON: %w", err)
		}
		if end != "]" {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, "\n    %s", text)
		end = "\n  ]"
	}
	out.WriteString(end)
	if value != nil {
		text, err := encodeJSON(value, "  ", "  ")
		if err != nil {
			return fmt.Errorf("printing JSON: %w", err)
		}
		fmt.Fprintf(out, ",\n  %q: %s", then, text)
	}
	out.WriteString("\n}\n")
	if err := out.Flush(); err != nil { // this returns the first error of all writes
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}

// visible escapes characters in JSON that are not safe to show. They are all in
// strings, since JSON is ASCII outside of strings.
func visible(src []byte) []byte {
	if safetext.Inspect(src).Total() == 0 {
		return src
	}
	var out []byte
	for _, r := range string(src) {
		s := string(r)
		switch {
		case r == '\n' || safetext.Line(s) == s:
			out = append(out, s...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// JSONFlag adds the flag --json to a command, which then prints one T as an object.
// The shape is kept for the documentation.
func JSONFlag[T any](env *Env, cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print JSON")
	env.shape(cmd, Shape{Type: reflect.TypeFor[T]()})
}

// JSONLinesFlag is JSONFlag for a command that prints one T on each line.
func JSONLinesFlag[T any](env *Env, cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print JSON, one object per line")
	env.shape(cmd, Shape{Type: reflect.TypeFor[T](), Lines: true})
}

// A Shape is what a command prints with --json.
type Shape struct {
	Type  reflect.Type
	Lines bool // one object on each line
	// With lists what it prints instead if other flags are given.
	With []FlagShape
}

// A FlagShape is what a command prints with --json and another flag.
type FlagShape struct {
	Flag string // "--list"
	Type reflect.Type
}

// AlsoJSON says that a command prints one T if --json and another flag are given.
func AlsoJSON[T any](env *Env, cmd *cobra.Command, flag string) {
	s := env.shapes[cmd]
	s.With = append(s.With, FlagShape{flag, reflect.TypeFor[T]()})
	env.shape(cmd, s)
}

func (env *Env) shape(cmd *cobra.Command, s Shape) {
	if env.shapes == nil {
		env.shapes = make(map[*cobra.Command]Shape)
	}
	env.shapes[cmd] = s
}

// ShapeOf returns what a command prints with --json; ok is false if it has no such flag.
func (env *Env) ShapeOf(cmd *cobra.Command) (s Shape, ok bool) {
	s, ok = env.shapes[cmd]
	return s, ok
}
