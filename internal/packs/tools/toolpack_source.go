package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// A Source says where the value of a parameter comes from when the model gives
// none.
type Source struct {
	From     string          // SourceLiteral, sourceTranscript, or "context." and a key of [Context]
	Required bool            // context only: without a value from there, and without a default, there is no call
	Value    json.RawMessage // SourceLiteral only: the value, as JSON
}

// What [Source.From] can be, besides context.
const (
	// SourceLiteral is a fixed value, which the model neither sees nor gives:
	// the parameter is not in the input schema.
	SourceLiteral = "literal"
	// sourceTranscript is an ordinary argument: the model has the transcript.
	sourceTranscript = "transcript"
)

// context returns the key of [Context] that the value comes from.
func (s Source) context() (name string, ok bool) {
	return strings.CutPrefix(s.From, contextPrefix)
}

// validSource reports whether from is a source that there is.
func validSource(from string) bool {
	name, ok := strings.CutPrefix(from, contextPrefix)
	return from == SourceLiteral || from == sourceTranscript || ok && slices.Contains(contextNames[:], name)
}

// sources returns the sources for [Tool.Definition].
func (t *Tool) sources() map[string]any {
	def := make(map[string]any, len(t.Sources))
	for name, s := range t.Sources {
		one := map[string]any{"from": s.From}
		put(one, "required", true, s.Required)
		if s.From == SourceLiteral {
			one["value"] = rawValue(s.Value)
		}
		def[name] = one
	}
	return def
}

// sources reads "sources" of a tools.json, once the input schema is known.
func (p *parser) sources(t *Tool, src []byte, n *node) {
	if n == nil || n.kind != kindObject {
		return
	}
	for _, m := range n.members {
		from := m.value.str("from")
		value := m.value.get("value")
		_, isContext := Source{From: from}.context()
		declared := t.input != nil && t.input.param(m.key) != nil
		switch {
		case from == SourceLiteral && value == nil:
			p.report(diag.Error, CodeSourceInvalid, m.value, fmt.Sprintf("%+q has a fixed value that is not there", clip(m.key)), `write "value"`)
		case from == SourceLiteral && declared:
			p.report(diag.Error, CodeSourceInvalid, m.value, fmt.Sprintf("%+q has a fixed value, and is a property of the input schema", clip(m.key)), "remove the property: the model must not give a value")
		case from != SourceLiteral && !declared:
			p.report(diag.Error, CodeSourceInvalid, m.value, fmt.Sprintf("%+q is no property of the input schema", clip(m.key)), "declare the property")
		case from != SourceLiteral && value != nil:
			p.report(diag.Error, CodeSourceInvalid, value, fmt.Sprintf("%+q has a fixed value, and is not from %q", clip(m.key), SourceLiteral), `write the value as "default" of the property`)
		default:
			s := Source{From: from, Required: isContext && m.value.isTrue("required")}
			if value != nil {
				s.Value = slices.Clone(src[value.start:value.end])
			}
			t.source(m.key, s)
		}
	}
}

func (t *Tool) source(name string, s Source) {
	if t.Sources == nil {
		t.Sources = make(map[string]Source)
	}
	t.Sources[name] = s
	if t.input != nil {
		t.input.sources = t.Sources
	}
}

// literals returns the names of fixed values that args gives nevertheless,
// sorted.
func (t *Tool) literals(args map[string]any) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if t.Sources[name].From == SourceLiteral {
			names = append(names, name)
		}
	}
	return names
}

// fill returns v with fixed values, with what ctx says, and with the defaults
// of what it does not say. It does not change v. What is required and nowhere
// to be had is noted in missing.
func (t *Tool) fill(v Values, ctx Context, missing *MissingContextError) (Values, error) {
	if len(t.Sources) == 0 {
		return v, nil
	}
	in := t.schema()
	out := Values{given: v.given, fields: maps.Clone(v.fields), defaulted: maps.Clone(v.defaulted)}
	if out.fields == nil {
		out.fields = make(map[string]any)
	}
	if out.defaulted == nil {
		out.defaulted = make(map[string]bool)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Sources)) {
		s := t.Sources[name]
		if s.From == SourceLiteral {
			out.fields[name] = rawValue(s.Value)
			out.defaulted[name] = true
			continue
		}
		key, isContext := s.context()
		if _, given := out.fields[name]; given || !isContext {
			continue
		}
		if text, ok := ctx[key]; ok {
			value, err := in.fromContext(name, text)
			if err != nil {
				return Values{}, &ArgumentError{Problems: []string{pointer([]string{name}) + ": " + err.Error()}, Schema: t.InputSchema}
			}
			out.fields[name] = value
			continue
		}
		if p := in.param(name); p != nil && p.preset != nil {
			out.fields[name] = p.preset.value()
			out.defaulted[name] = true
		} else if s.Required {
			missing.Names = append(missing.Names, key)
			missing.Params = append(missing.Params, name)
		}
	}
	return out, nil
}

// fromContext makes a text of the user's context the value of a parameter: the
// text itself, or what it means as JSON if only that is valid.
func (in *inputSchema) fromContext(name, text string) (any, error) {
	p := in.param(name)
	if p == nil || p.compiled == nil || p.compiled.Validate(text) == nil {
		return text, nil
	}
	if n, e := parseJSON([]byte(text)); e == nil {
		if value := n.value(); p.compiled.Validate(value) == nil {
			return value, nil
		}
	}
	return nil, fmt.Errorf("what the user's context says (%s) is not valid for it", in.sources[name].From)
}
