package callargs

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// TestDecode: which arguments are refused, and in which words. Arguments that can be
// read in two ways, or not at all, are refused.
func TestDecode(t *testing.T) {
	type params struct {
		Text   string            `json:"text"`
		Maybe  *string           `json:"maybe"`
		Offset int64             `json:"offset"`
		List   []string          `json:"list"`
		Only   *[]string         `json:"only"`
		Inner  *strictjson.Node  `json:"inner"`
		Words  map[string]string `json:"words"`
	}
	x := "x"
	for raw, want := range map[string]params{
		``: {}, ` null `: {}, `{}`: {},
		`{"text": null, "maybe": null, "offset": null, "list": null, "only": null, "words": null}`:         {},
		`{"text": "x", "maybe": "x", "offset": 5.0, "list": ["x", null], "only": [], "words": {"x": "x"}}`: {Text: x, Maybe: &x, Offset: 5, List: []string{x, ""}, Only: &[]string{}, Words: map[string]string{x: x}},
		` { "offset" : 9223372036854775807 , "\u0074ext" : "\u0078" } `:                                    {Text: x, Offset: 9223372036854775807},
		`{"offset": 0.000}`: {},
		`{"list": []}`:      {List: []string{}},
		"{\"text\": \"\\ud83d\\ude00\u2028\\u0000\"}": {Text: "😀\u2028\x00"},
	} {
		var got params
		if problem := Read(json.RawMessage(raw)).Decode(&got); problem != "" || !reflect.DeepEqual(got, want) {
			t.Errorf("decode(%s) = %+v, %q, want %+v", raw, got, problem, want)
		}
	}
	for raw, want := range map[string]string{
		`{"text": "a", "text": "b"}`:             `at byte 14: key "text" occurs twice`,
		`{"text": "a", "\u0074ext": "b"}`:        `at byte 14: key "text" occurs twice`,
		`{"inner": {"a": {"b": 1, "b": 1}}}`:     `at byte 25: key "b" occurs twice`,
		`{"inner": {"a": "\ud800"}}`:             `at byte 16: a \u escape is half of a surrogate pair`,
		"{\"text\": \"\xff\"}":                   `at byte 10: text is not UTF-8`,
		"\ufeff{}":                               `at byte 0: `,
		`{"text": "a"} {}`:                       `at byte 14: there is more after the JSON value`,
		`{"text": "a",}`:                         `at byte 12: a comma before the closing bracket`,
		`{"text": "a"`:                           `the JSON ends in the middle`,
		`{"offset": 1e999999}`:                   `at byte 11: number is too large or too long`,
		`{"inner": ` + strings.Repeat("[", 1000): `nested more than 100 levels deep`,
		`{"inner": ` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `, "inner": 1}`: `key "inner" occurs twice`,
		`[]`:                               `the arguments must be an object`,
		`"x"`:                              `the arguments must be an object`,
		`{"TEXT": "a"}`:                    `there is no argument "TEXT"`,
		`{"text ": "a"}`:                   `there is no argument "text "`,
		`{"text": 1}`:                      `text is a number and must be a string`,
		`{"maybe": ["x"]}`:                 `maybe is a list and must be a string`,
		`{"offset": "1"}`:                  `offset is a string and must be a number`,
		`{"offset": -1}`:                   `offset must be a whole number that is not negative, not -1`,
		`{"offset": 1.5}`:                  `offset must be a whole number that is not negative, not 1.5`,
		`{"offset": 1e3}`:                  `offset must be a whole number that is not negative, not 1e3`,
		`{"offset": 12345678901234567890}`: `offset must be a whole number that is not negative, not 12345678901234567890`,
		`{"list": "x"}`:                    `list is a string and must be a list`,
		`{"list": ["x", 1]}`:               `list[1] is a number and must be a string`,
		`{"only": {"0": "x"}}`:             `only is an object and must be a list`,
		`{"words": {"a": true}}`:           `words.a is a boolean and must be a string`,
	} {
		args := Read(json.RawMessage(raw))
		if problem := args.Decode(new(params)); !strings.Contains(problem, want) {
			t.Errorf("decode(%.60s) = %q, want %q", raw, problem, want)
		}
		if args.Whole().Digest() == "" {
			t.Errorf("the arguments %.60s have no digest", raw)
		}
	}
}

// TestArgumentsKeepTheirText: numbers stay as the client wrote them, even beyond what
// a float64 holds. Meaningless parts are not kept.
func TestArgumentsKeepTheirText(t *testing.T) {
	pad := strings.Repeat(" \t\r\n", 1<<18)
	args := Read(json.RawMessage(pad + `{` + pad + `"b":[1e400,12345678901234567890, -0.0]` + pad + `, "a":"<\u2028\/"` + pad + `}` + pad))
	if got, want := args.Whole().Canonical(), `{"a":"<\u2028/","b":[1e400,12345678901234567890,-0.0]}`; got != want {
		t.Errorf("canonical form %s, want %s", got, want)
	}
	if again := args.Whole(); again != args.Whole() {
		t.Error("the canonical form is written twice")
	}
}
