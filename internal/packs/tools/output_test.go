package tools_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

func TestOutputApply(t *testing.T) {
	for name, tt := range map[string]struct {
		out    tools.Output
		stdout string
		failed bool
		cut    bool
		text   string
		parsed any
		null   bool // parsed is null
		speak  string
		bad    bool
	}{
		"as it is":                {stdout: "a\n", text: "a\n"},
		"nothing":                 {},
		"JSON is parsed":          {stdout: `{"n": 12345678901234567890}`, text: `{"n": 12345678901234567890}`, parsed: map[string]any{"n": json.Number("12345678901234567890")}},
		"a number":                {stdout: "42\n", text: "42\n", parsed: json.Number("42")},
		"a text":                  {stdout: "\"x\"\n", text: "\"x\"\n", parsed: "x"},
		"truth":                   {stdout: "true", text: "true", parsed: true},
		"null":                    {stdout: "null\n", text: "null\n", null: true},
		"a word":                  {stdout: "hello\n", text: "hello\n"},
		"what was cut":            {stdout: "42\n", cut: true, text: "42\n"},
		"field, cut":              {out: tools.Output{ExtractField: "a"}, stdout: `{"a": 1}`, cut: true, text: `{"a": 1}`, bad: true},
		"a number, said to be":    {out: tools.Output{Format: "json"}, stdout: "42\n", text: "42\n", parsed: json.Number("42")},
		"should have been":        {out: tools.Output{Format: "json"}, stdout: "oops", text: "oops", bad: true},
		"a byte order mark":       {out: tools.Output{ExtractField: "a"}, stdout: "\ufeff{\"a\": 1}\r\n", text: "1", parsed: map[string]any{"a": json.Number("1")}},
		"equal keys":              {out: tools.Output{ExtractField: "a"}, stdout: `{"a": 1, "a": "x"}`, text: "x", parsed: map[string]any{"a": "x"}},
		"half of a character":     {stdout: `"\ud83d"`, text: `"\ud83d"`, parsed: "\ufffd"},
		"not UTF-8":               {stdout: "\"\xff\"", text: "\"\xff\""},
		"two values":              {stdout: "{}\n{}\n", text: "{}\n{}\n"},
		"a value and a bracket":   {stdout: "{}}", text: "{}}"},
		"too deep":                {stdout: strings.Repeat("[", 110) + strings.Repeat("]", 110), text: strings.Repeat("[", 110) + strings.Repeat("]", 110)},
		"half of JSON":            {stdout: `{"a": `, text: `{"a": `},
		"field":                   {out: tools.Output{ExtractField: "a"}, stdout: `{"a": "x\n"}`, text: "x\n", parsed: map[string]any{"a": "x\n"}},
		"field, number":           {out: tools.Output{ExtractField: "a"}, stdout: `{"a": 1.50}`, text: "1.50", parsed: map[string]any{"a": json.Number("1.50")}},
		"field, inside":           {out: tools.Output{ExtractField: "a.1.b"}, stdout: `{"a": [0, {"b": true}]}`, text: "true", parsed: map[string]any{"a": []any{json.Number("0"), map[string]any{"b": true}}}},
		"field with a dot":        {out: tools.Output{ExtractField: "a.b"}, stdout: `{"a.b": "x"}`, text: "x", parsed: map[string]any{"a.b": "x"}},
		"field, missing":          {out: tools.Output{ExtractField: "b", Template: "<{{output}}>"}, stdout: `{}`, text: `{}`, parsed: map[string]any{}, bad: true},
		"field, out of range":     {out: tools.Output{ExtractField: "5"}, stdout: `[1]`, text: `[1]`, parsed: []any{json.Number("1")}, bad: true},
		"field, not JSON":         {out: tools.Output{ExtractField: "a"}, stdout: "text", text: "text", bad: true},
		"template":                {out: tools.Output{Template: "Ticket {{output}}, {{{{ {{output}}"}, stdout: "42\n", text: "Ticket 42, {{ 42", parsed: json.Number("42")},
		"template, not again":     {out: tools.Output{Template: "<{{output}}>"}, stdout: "{{output}}", text: "<{{output}}>"},
		"template, no output":     {out: tools.Output{Template: "{{output:nothing}}"}, stdout: "\n", text: "nothing"},
		"both":                    {out: tools.Output{ExtractField: "n", Template: "No. {{output}}"}, stdout: `{"n": 7}`, text: "No. 7", parsed: map[string]any{"n": json.Number("7")}},
		"failure as it is":        {out: tools.Output{ExtractField: "n", Template: "No. {{output}}", Speak: true, Format: "json"}, stdout: "error", failed: true, text: "error"},
		"failure parsed":          {stdout: `[]`, failed: true, text: "[]", parsed: []any{}},
		"speak":                   {out: tools.Output{Speak: true}, stdout: "hello\n", text: "hello\n", speak: "hello"},
		"speak, short":            {out: tools.Output{Speak: true, MaxChars: 4}, stdout: "häßlich", text: "häßlich", speak: "häß…"},
		"speak, exactly":          {out: tools.Output{Speak: true, MaxChars: 4}, stdout: "häßl", text: "häßl", speak: "häßl"},
		"speak, 1,000 are said":   {out: tools.Output{Speak: true}, stdout: strings.Repeat("ä", 2000), text: strings.Repeat("ä", 2000), speak: strings.Repeat("ä", 999) + "…"},
		"max_chars is for speech": {out: tools.Output{MaxChars: 3}, stdout: "abcdef", text: "abcdef"},
		"too large to parse":      {stdout: `[` + strings.Repeat(" ", tools.MaxParsed) + `]`, text: `[` + strings.Repeat(" ", tools.MaxParsed) + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tt.out.Apply(tt.stdout, !tt.cut, !tt.failed)
			if got.Text != tt.text || got.Speak != tt.speak {
				t.Errorf("Apply(%.50q) = %.50q, speak %.50q, want %.50q, %.50q", tt.stdout, got.Text, got.Speak, tt.text, tt.speak)
			}
			var parsed any
			if got.Parsed != nil {
				parsed = *got.Parsed
			}
			if got.Parsed != nil != (tt.parsed != nil || tt.null) {
				t.Errorf("Apply(%.50q) parsed %v, want %v", tt.stdout, got.Parsed, tt.parsed)
			}
			if diff := cmp.Diff(tt.parsed, parsed); diff != "" {
				t.Errorf("Apply(%.50q) parsed: -want +got\n%s", tt.stdout, diff)
			}
			if _, ok := errors.AsType[*tools.OutputError](err); ok != tt.bad {
				t.Errorf("Apply(%.50q) = %v, want an outputError: %v", tt.stdout, err, tt.bad)
			}
		})
	}
}

func TestPolicyAllows(t *testing.T) {
	if p := (tools.Policy{}); !p.Allows(0) || p.Allows(1) {
		t.Error("the zero Policy allows something other than 0")
	}
	if p := (tools.Policy{AllowedExitCodes: []int{1}}); p.Allows(0) || !p.Allows(1) {
		t.Error("a Policy allows something other than it says")
	}
}
