package tools

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// defaultMaxChars is how much of a result is spoken when nothing is said.
const defaultMaxChars = 1000

// maxParsed is how much standard output is read as JSON.
const maxParsed = 1 << 20 // 1 MiB

// An Output says how the result of a run is shown. The zero value shows it as
// it is.
type Output struct {
	Format       string // "text", "json", "markdown"; "" is text
	MaxChars     int    // longest spoken text, in characters; 0: 1,000
	ExtractField string // of JSON output, only this field; "a.b.0" reaches inside
	Template     string // with {{output}} for the result; "" is the result alone
	Speak        bool   // the result is meant to be read aloud
	Merged       bool   // show both streams as one, in the order they were written
}

// An OutputError says that a program printed something else than its tool
// declares. The run itself is not a failure because of that.
type OutputError struct {
	Problem string
}

func (e *OutputError) Error() string { return "output is not as declared: " + e.Problem }

// Apply formats the standard output of a run. exitOK is [Policy.Allows] of its
// exit code: what a failed program printed is shown as it is.
//
// text is what to show. parsed is stdout as JSON (an object or a list; any
// value if Format is "json"), numbers as json.Number, or nil. speak is what to
// read aloud, at most MaxChars characters, "" for nothing. An error, always an
// *[OutputError], comes with text and parsed that can be used.
func (o Output) Apply(stdout string, exitOK bool) (text string, parsed any, speak string, err error) {
	parsed, isJSON := o.parse(stdout)
	if !exitOK {
		return stdout, parsed, "", nil
	}
	text = stdout
	switch {
	case o.ExtractField != "" && !isJSON:
		err = &OutputError{fmt.Sprintf("%q cannot be taken out of what is not JSON", o.ExtractField)}
	case o.ExtractField != "":
		value, ok := extract(parsed, o.ExtractField)
		if !ok {
			err = &OutputError{fmt.Sprintf("there is no %q in it", o.ExtractField)}
			break
		}
		if s, isString := value.(string); isString {
			text = s
		} else {
			text = string(canonical(value))
		}
	case o.Format == "json" && !isJSON:
		err = &OutputError{"it is not JSON"}
	}
	if o.Template != "" && err == nil {
		text = o.fill(strings.TrimRight(text, "\r\n"))
	}
	if o.Speak {
		limit := o.MaxChars
		if limit <= 0 {
			limit = defaultMaxChars
		}
		speak = cut(strings.TrimSpace(text), limit)
	}
	return text, parsed, speak, err
}

func (o Output) parse(stdout string) (value any, ok bool) {
	s := strings.TrimSpace(stdout)
	if s == "" || len(s) > maxParsed {
		return nil, false
	}
	if o.Format != "json" && s[0] != '{' && s[0] != '[' {
		return nil, false
	}
	n, e := parseJSON([]byte(s))
	if e != nil {
		return nil, false
	}
	return n.value(), true
}

// extract returns the member called field, or else what the dotted path leads
// to.
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

// outputName is the one placeholder of an output template.
const outputName = "output"

// fill puts s into the template. A template that is none is left out; the
// parsers refuse it.
func (o Output) fill(s string) string {
	a, err := ParseArg(o.Template)
	if err != nil {
		return s
	}
	var b strings.Builder
	for _, p := range a.pieces {
		switch {
		case p.form == literal:
			b.WriteString(p.extra)
		case p.form == fallback && s == "":
			b.WriteString(p.extra)
		default:
			b.WriteString(s)
		}
	}
	return b.String()
}

// cut shortens s to at most limit characters, the last of them "…" when
// something was left out.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := 0
	for i := range s {
		if runes == limit-1 {
			return s[:i] + "…"
		}
		runes++
	}
	return s
}
