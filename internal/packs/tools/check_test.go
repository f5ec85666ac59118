package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

const ticketSchema = `{"type": "object", "properties": {
	"title": {"type": "string", "minLength": 1},
	"severity": {"type": "integer", "minimum": 1, "maximum": 5, "default": 3},
	"labels": {"type": "array", "items": {"type": "string"}},
	"pass": {"type": "string", "pattern": "^[a-z]+$", "writeOnly": true}
}, "required": ["title"], "additionalProperties": false}`

func TestCheck(t *testing.T) {
	tool := tooltest.Compile(t, ticketSchema, `["p"]`)
	for in, want := range map[string]string{
		`{"title": "x"}`:                                   `{"severity":3,"title":"x"}`,
		` {"title": "x", "severity": 5.0} `:                `{"severity":5.0,"title":"x"}`,
		`{"title": "<&>", "labels": ["a"], "severity": 1}`: `{"labels":["a"],"severity":1,"title":"<&>"}`,
	} {
		if got := tooltest.MustCheck(t, tool, in).JSON(); got != want {
			t.Errorf("Check(%s) = %s, want %s", in, got, want)
		}
	}

	free := tooltest.Compile(t, `{}`, `["p"]`)
	for _, in := range []string{"", " ", "null", "{}"} {
		if got := tooltest.MustCheck(t, free, in).JSON(); got != "{}" {
			t.Errorf("Check(%q) = %s, want {}", in, got)
		}
	}
	if got := (tools.Values{}).JSON(); got != "{}" {
		t.Errorf("Values{}.JSON() = %s, want {}", got)
	}
}

func TestCheckRefuses(t *testing.T) {
	tool := tooltest.Compile(t, ticketSchema, `["p"]`)
	for in, want := range map[string]string{
		`{}`:                              `missing "title"`,
		``:                                `missing "title"`,
		`{"title": ""}`:                   `/title: `,
		`{"title": "x", "severity": 6}`:   `/severity: must be at most 5`,
		`{"title": "x", "severity": 1.5}`: `/severity: `,
		`{"title": "x", "y": 1, "z": 1}`:  `unknown "y", "z"`,
		`[]`:                              `must be an object, not a list`,
		`"x"`:                             `must be an object, not a string`,
		`{"title": "x", "labels": ` + tooltest.Nested(80) + `}`: `levels deep`,
		// AR-05: values that are not text are not converted to text.
		`{"title": "x", "labels": [["a"]]}`:    `/labels/0: got array, want string`,
		`{"title": "x", "labels": [{"a": 1}]}`: `/labels/0: got object, want string`,
		`{"title": "x", "labels": [1]}`:        `/labels/0: got number, want string`,
		`{"title": 1}`:                         `/title: got number, want string`,
	} {
		_, err := tool.Check(tooltest.Arguments(t, in))
		e, ok := errors.AsType[*tools.ArgumentError](err)
		if !ok || !strings.Contains(e.Error(), want) || string(e.Schema) != ticketSchema {
			t.Errorf("Check(%.80s) = %v, want an ArgumentError about %q with the schema", in, err, want)
		}
	}

	_, err := tool.Check(tooltest.Arguments(t, `{"title": "x", "pass": "HUNTER2"}`))
	if err == nil || strings.Contains(err.Error(), "HUNTER2") {
		t.Errorf("Check of a secret = %v, want an error that does not show it", err)
	}
	_, err = tool.Check(tooltest.Arguments(t, "{\"title\": \"x\", \"\u202e\\u001b[2J\": 1}"))
	if err == nil || strings.ContainsAny(err.Error(), "\u202e\x1b") {
		t.Errorf("Check of a hidden name = %q, want an error that shows it", err)
	}
}

// The same wrong call always gets the same error, whatever the map order.
func TestCheckIsStable(t *testing.T) {
	tool := tooltest.Compile(t, ticketSchema, `["p"]`)
	args := tooltest.Arguments(t, `{"title": "", "severity": 9, "labels": [1, 2, 3], "a": 1, "b": 2}`)
	_, first := tool.Check(args)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := tool.Check(args); err.Error() != first.Error() {
				t.Errorf("Check = %v, then %v", first, err)
			}
		})
	}
	wg.Wait()
}

// A Tool that no parser made is checked as strictly.
func TestCheckOfLiteralTool(t *testing.T) {
	tool := &tools.Tool{Name: "t", InputSchema: json.RawMessage(ticketSchema)}
	if _, err := tool.Check(tooltest.Arguments(t, `{}`)); err == nil {
		t.Error("Check({}) = nil, want an error")
	}
	if got := tooltest.MustCheck(t, tool, `{"title": "x"}`).JSON(); got != `{"severity":3,"title":"x"}` {
		t.Errorf("Check = %s, want the default", got)
	}
	broken := &tools.Tool{Name: "t", InputSchema: json.RawMessage(`{"type": 1}`)}
	if _, err := broken.Check(nil); err == nil {
		t.Error("Check against what is no schema = nil, want an error")
	}
	if got, want := string((&tools.Tool{Name: "t"}).PortableSchema()), `{"type":"object"}`; got != want {
		t.Errorf("PortableSchema() = %s, want %s", got, want)
	}
}

func TestSchemaThatMultiplies(t *testing.T) {
	var defs []string
	for i := range 50 {
		defs = append(defs, fmt.Sprintf(`"d%d": {"allOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	defs = append(defs, `"d50": {}`)
	for _, where := range []string{`"$ref": "#/$defs/d0"`, `"properties": {"x": {"$ref": "#/$defs/d0"}}`, `"properties": {"x": {"items": {"$ref": "#/$defs/d0"}}}`} {
		src := tooltest.One(`"command": ["p"], "inputSchema": {` + where + `, "$defs": {` + strings.Join(defs, ", ") + `}}`)
		if set, found := toolsjson.Parse("f", []byte(src), tools.Limits{}); set != nil || tooltest.Codes(found) != tools.CodeSchemaInvalid {
			t.Errorf("ParseToolsJSON of 2^50 references by %s = %v, want %s", where, found, tools.CodeSchemaInvalid)
		}
	}
}

func TestRedact(t *testing.T) {
	tool := tooltest.Compile(t, `{"properties": {
		"user": {"type": "string"}, "word": {"type": "string", "writeOnly": true}, "phrase": {"format": "password"},
		"ref": {"$ref": "#/$defs/hidden"}, "list": {"type": "array", "items": {"format": "password"}},
		"inner": {"type": "object", "properties": {"deep": {"writeOnly": true}}}, "api_key": {"type": "string"}, "own": {"type": "string", "secret": true}
	}, "$defs": {"hidden": {"anyOf": [{"type": "string", "writeOnly": true}, {"type": "null"}]}}}`, `["p"]`)
	if got, want := tool.Secrets(), []string{"api_key", "deep", "list", "own", "phrase", "ref", "word"}; !slices.Equal(got, want) {
		t.Errorf("the secrets are %v, want %v", got, want)
	}
	in := `{"user": "u", "word": "w1", "phrase": "p1", "ref": "r1", "list": ["l1"], "inner": {"deep": {"a": "d1"}, "x": 1}, "api_key": "k1", "o": [{"clientSecret": "c1", "accessToken": "t1", "Password": null}]}`
	want := `{"api_key":"[redacted]","inner":{"deep":"[redacted]","x":1},"list":"[redacted]","o":[{"Password":null,"accessToken":"[redacted]","clientSecret":"[redacted]"}],"phrase":"[redacted]","ref":"[redacted]","user":"u","word":"[redacted]"}`
	if got := redacted(tool, in); got != want {
		t.Errorf("Redact(%s)\n= %s\nwant %s", in, got, want)
	}
	for in, want := range map[string]string{"": "{}", "{": "the JSON ends in the middle", "[1]": "[1]"} {
		if got := redacted(tool, in); got != want {
			t.Errorf("Redact(%q) = %s, want %s", in, got, want)
		}
	}
	both := tooltest.MustCheck(t, tool, `{"user": "u", "own": "o1", "api_key": "k1"}`)
	if diff := cmp.Diff([]string{"k1", "o1"}, tool.SecretValues(both)); diff != "" {
		t.Errorf("SecretValues: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"o1"}, tool.DeclaredSecrets(both)); diff != "" {
		t.Errorf("DeclaredSecrets: -want +got\n%s", diff)
	}
	values := tool.SecretValues(tooltest.MustCheck(t, tool, `{"user": "u", "word": "w\"1", "list": ["l1", "l2"], "api_key": ""}`))
	if diff := cmp.Diff([]string{"l1%20l2", "l1 l2", `w%221`, `w\"1`, `w"1`, "l1", "l2"}, values); diff != "" {
		t.Errorf("SecretValues: -want +got\n%s", diff)
	}
}
