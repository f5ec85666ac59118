package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// printJSON prints v for programs to read. Characters that could drive a
// terminal or deceive a reader are written as \u escapes: the same JSON, and
// safe to look at.
func printJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// printJSONLine is printJSON on one line.
func printJSONLine(w io.Writer, v any) error { return writeJSON(w, v, "") }

func writeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	if _, err := w.Write(visible(b.Bytes())); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}

// visible escapes what is not safe to show in JSON. All of it is inside of
// strings, since JSON is ASCII outside of them.
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
