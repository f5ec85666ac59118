package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// defaultMaxChars is how much of a result is spoken by default.
const defaultMaxChars = 1000

// maxParsed is how much standard output is read as JSON.
const maxParsed = 1 << 20 // 1 MiB

// An Output says how the result of a run is shown. The zero value shows it unchanged.
type Output struct {
	Format       string // "text", "json", "markdown"; "" is text
	MaxChars     int    // longest spoken text, in characters; 0: 1,000
	ExtractField string // of JSON output, only this field; "a.b.0" reaches inside
	Template     string // with {{output}} for the result; "" is the result alone
	Speak        bool   // the result is meant to be read aloud
	Merged       bool   // show both streams as one
}

// An outputError says that a program's output is not what its tool declares. That
// does not make the run a failure.
type outputError struct {
	Problem string
}

func (e *outputError) Error() string { return "output is not as declared: " + e.Problem }

// A Formatted is the standard output of a run, formatted as its tool declares.
type Formatted struct {
	Text   string // what to show
	Parsed *any   // standard output as JSON, numbers as json.Number; nil if it is not JSON
	Speak  string // what to read aloud, at most MaxChars characters; "" for nothing
}

// Apply formats the standard output of a run. exitOK is [Policy.Allows] of its exit
// code: the output of a failed program is shown unchanged. An error says that the
// output is not as declared; the Formatted can be used anyway.
//
// More than 1 MiB is not read as JSON. Output that was cut is not, either; isWhole
// says whether it is complete.
func (o Output) Apply(stdout string, isWhole, exitOK bool) (out Formatted, err error) {
	value, isJSON := any(nil), false
	if isWhole {
		value, isJSON = parseOutput(stdout)
	}
	if isJSON {
		out.Parsed = &value
	}
	out.Text = stdout
	if !exitOK {
		return out, nil
	}
	switch {
	case o.ExtractField != "" && (!isWhole || len(stdout) > maxParsed):
		err = &outputError{fmt.Sprintf("it has more than %d bytes, too many to take %q out of it", maxParsed, o.ExtractField)}
	case o.ExtractField != "" && !isJSON:
		err = &outputError{fmt.Sprintf("%q cannot be taken out of what is not JSON", o.ExtractField)}
	case o.ExtractField != "":
		field, ok := extract(value, o.ExtractField)
		if !ok {
			err = &outputError{fmt.Sprintf("there is no %q in it", o.ExtractField)}
			break
		}
		if s, isString := field.(string); isString {
			out.Text = s
		} else {
			out.Text = string(strictjson.Canonical(field))
		}
	case o.Format == "json" && !isJSON:
		err = &outputError{"it is not JSON"}
	}
	if o.Template != "" && err == nil {
		out.Text = o.fill(strings.TrimRight(out.Text, "\r\n"))
	}
	if o.Speak {
		limit := o.MaxChars
		if limit <= 0 {
			limit = defaultMaxChars
		}
		out.Speak = phrase.Cut(strings.TrimSpace(out.Text), limit)
	}
	return out, err
}

// parseOutput reads JSON that a program printed. No schema applies to it: the last of
// two equal keys counts, as for most readers, and a byte order mark is ignored.
func parseOutput(stdout string) (value any, ok bool) {
	if len(stdout) > maxParsed || !utf8.ValidString(stdout) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(stdout, "\ufeff")))
	d.UseNumber()
	if d.Decode(&value) != nil || isDeeper(value, maxOutputDepth) {
		return nil, false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return value, true
}

// maxOutputDepth is how deeply nested a program's output may be to be parsed.
const maxOutputDepth = 100

// isDeeper reports whether v is nested more than so many levels deep.
func isDeeper(v any, levels int) bool {
	if levels < 0 {
		return true
	}
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return isDeeper(e, levels-1) })
	case map[string]any:
		for _, e := range v {
			if isDeeper(e, levels-1) {
				return true
			}
		}
	}
	return false
}

// extract returns the member named field, or else the value at the dotted path.
func extract(v any, field string) (any, bool) {
	if m, ok := v.(map[string]any); ok {
		if value, ok := m[field]; ok {
			return value, true
		}
	}
	for tok := range strings.SplitSeq(field, ".") {
		switch inner := v.(type) {
		case map[string]any:
			value, ok := inner[tok]
			if !ok {
				return nil, false
			}
			v = value
		case []any:
			i, err := strconv.Atoi(tok)
			if err != nil || i < 0 || i >= len(inner) {
				return nil, false
			}
			v = inner[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// OutputName is the one placeholder of an output template.
const OutputName = "output"

// fill puts s into the template. An invalid template is ignored; the parsers refuse
// it.
func (o Output) fill(s string) string {
	a, err := template.Parse(o.Template)
	if err != nil {
		return s
	}
	var b strings.Builder
	for _, p := range a.Pieces {
		switch {
		case p.Form == template.Literal:
			b.WriteString(p.Extra)
		case p.Form == template.Fallback && s == "":
			b.WriteString(p.Extra)
		default:
			b.WriteString(s)
		}
	}
	return b.String()
}
