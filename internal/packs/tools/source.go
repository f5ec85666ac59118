package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A Source says where a parameter's value comes from if the model gives none.
type Source struct {
	From     string          // SourceLiteral, SourceTranscript, or "context." and a key of [Context]
	Required bool            // context only: the call fails without a value from there or a default
	Value    json.RawMessage // SourceLiteral only: the value, as JSON
}

// What [Source.From] can be, besides context.
const (
	// SourceLiteral is a fixed value, which the model can neither see nor set: the
	// parameter is not in the input schema.
	SourceLiteral = "literal"
	// SourceTranscript is an ordinary argument: the model has the transcript.
	SourceTranscript = "transcript"
)

// IsContext reports whether the value comes from a [Context].
func (s Source) IsContext() bool { return strings.HasPrefix(s.From, template.ContextPrefix) }

// context returns the key of [Context] that the value comes from.
func (s Source) context() (name string, ok bool) {
	return strings.CutPrefix(s.From, template.ContextPrefix)
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

// literals returns, sorted, the names in args of parameters with fixed values.
func (t *Tool) literals(args map[string]any) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if t.Sources[name].From == SourceLiteral {
			names = append(names, name)
		}
	}
	return names
}

// fill returns v with fixed values, values from ctx, and defaults for the rest. It
// does not change v. It records required values that are not available in missing.
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
			value, err := t.fromContext(name, text)
			if err != nil {
				return Values{}, &ArgumentError{Problems: []string{strictjson.Pointer([]string{name}) + ": " + err.Error()}, Schema: t.InputSchema}
			}
			out.fields[name] = value
			continue
		}
		if p := in.Param(name); p != nil && p.Preset != nil {
			out.fields[name] = p.Preset.Value()
			out.defaulted[name] = true
		} else if s.Required {
			missing.Names = append(missing.Names, key)
			missing.Params = append(missing.Params, name)
		}
	}
	return out, nil
}

// fromContext turns a text from the context into a parameter's value: the text
// itself, or its value as JSON if only that is valid.
func (t *Tool) fromContext(name, text string) (any, error) {
	p := t.schema().Param(name)
	if p == nil || p.Compiled == nil || p.Compiled.Validate(text) == nil {
		return text, nil
	}
	if n, e := strictjson.Parse([]byte(text)); e == nil {
		if value := n.Value(); p.Compiled.Validate(value) == nil {
			return value, nil
		}
	}
	return nil, fmt.Errorf("what the user's context says (%s) is not valid for it", t.Sources[name].From)
}
