package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	commandsPage = "../../docs/reference/commands.md"
	// generated is the line of the page below which this test writes it.
	generated = "<!-- Below this line the page is made from the program: go test ./cmd/packs-mcp -run TestCommandsPage -update -->\n"
)

// The page about the commands agrees with the program.
func TestCommandsPage(t *testing.T) {
	page, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	above, _, ok := strings.Cut(string(page), generated)
	if !ok {
		t.Fatalf("%s has no line %q", commandsPage, generated)
	}
	want := above + generated + commandsText()
	if *update {
		if err := os.WriteFile(commandsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Errorf("%s is not current; run: go test ./cmd/packs-mcp -run TestCommandsPage -update", commandsPage)
	}
}

// commandsText describes every command in Markdown.
func commandsText() string {
	a, all := tree()
	var b strings.Builder
	for _, c := range all {
		if c.HasParent() && c.Parent().Name() == "completion" {
			continue // one for each shell, which explain themselves
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```\n%s\n```\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."), c.UseLine())
		if c.Long != "" {
			fmt.Fprintf(&b, "\n%s", markdown(c.Long))
		}
		if len(c.Aliases) > 0 {
			fmt.Fprintf(&b, "\nAlso called `%s`.\n", strings.Join(c.Aliases, "`, `"))
		}
		if flags := strings.TrimRight(c.NonInheritedFlags().FlagUsages(), "\n"); flags != "" {
			fmt.Fprintf(&b, "\n```text\n%s\n```\n", flags)
		}
		fmt.Fprintf(&b, "\n```sh\n%s\n```\n", dedent(c.Example))
		if s, ok := a.ShapeOf(c); ok {
			each := "an object"
			if s.Lines {
				each = "one object per line"
			}
			fmt.Fprintf(&b, "\nWith `--json`, %s:\n\n```text\n%s\n```\n", each, shapeText(s.Type))
			for _, w := range s.With {
				fmt.Fprintf(&b, "\nWith `--json` and `%s`:\n\n```text\n%s\n```\n", w.Flag, shapeText(w.Type))
			}
		}
	}
	return b.String()
}

// dedent removes the indentation of examples.
func dedent(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimPrefix(line, "  "))
	}
	return strings.Join(lines, "\n")
}

// markdown returns a long text with its indented parts as blocks.
func markdown(text string) string {
	var b strings.Builder
	block := false
	for line := range strings.SplitSeq(text, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != block && line != "" {
			block = indented
			b.WriteString(map[bool]string{true: "```text\n", false: "```\n\n"}[block])
		}
		if block {
			b.WriteString(strings.TrimPrefix(line, "  "))
		} else {
			b.WriteString(strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(line))
		}
		b.WriteByte('\n')
	}
	if block {
		b.WriteString("```\n")
	}
	return strings.ReplaceAll(b.String(), "\n\n```\n\n", "\n```\n\n")
}

// shapeText sketches what a command prints as JSON.
func shapeText(t reflect.Type) string {
	var b strings.Builder
	sketch(&b, t, "", nil)
	return b.String()
}

// sketch writes the shape of a type, in the words of the page: text, number, time,
// true or false, anything. A question mark marks what may be missing.
func sketch(b *strings.Builder, t reflect.Type, indent string, above []reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	marshals := func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }
	switch {
	case t == reflect.TypeFor[time.Time]():
		b.WriteString("time")
		return
	case marshals(reflect.TypeFor[json.Marshaler]()):
		b.WriteString("anything")
		return
	case marshals(reflect.TypeFor[encoding.TextMarshaler]()), t == reflect.TypeFor[[]byte]():
		b.WriteString("text")
		return
	}
	switch t.Kind() {
	case reflect.Bool:
		b.WriteString("true or false")
	case reflect.String:
		b.WriteString("text")
	case reflect.Slice, reflect.Array:
		b.WriteByte('[')
		sketch(b, t.Elem(), indent, above)
		b.WriteString(", …]")
	case reflect.Map:
		b.WriteString("{text: ")
		sketch(b, t.Elem(), indent, above)
		b.WriteString(", …}")
	case reflect.Interface:
		b.WriteString("anything")
	case reflect.Struct:
		if slices.Contains(above, t) {
			b.WriteString("the same again")
			return
		}
		b.WriteString("{\n")
		members(b, t, indent+"  ", append(above, t))
		b.WriteString(indent + "}")
	default:
		b.WriteString("number")
	}
}

func members(b *strings.Builder, t reflect.Type, indent string, above []reflect.Type) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			members(b, f.Type, indent, above)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if strings.Contains(options, "omit") {
			name += "?"
		}
		fmt.Fprintf(b, "%s%s: ", indent, name)
		sketch(b, f.Type, indent, above)
		b.WriteByte('\n')
	}
}
