package tools_test

import (
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

// redacted is what a tool makes of arguments, also of those that its schema refuses.
func redacted(tool *tools.Tool, in string) string {
	var v tools.Values
	if in != "" {
		root, e := strictjson.Parse([]byte(in))
		if e != nil {
			return e.Error() // such arguments get no further than Check
		}
		v = tools.Given(root)
	}
	return string(strictjson.Canonical(tool.Redact(v)))
}

func TestRedactNested(t *testing.T) {
	tool := tooltest.Compile(t, `{"properties": {"x": {"type": "string"}}}`, `["p"]`)
	for in, want := range map[string]string{
		`{"a": {"b": [{"API-Keys": ["k1", "k2"]}, {"tokens": {"x": "t1"}}]}}`: `{"a":{"b":[{"API-Keys":"[redacted]"},{"tokens":"[redacted]"}]}}`,
		`{"\u0070assword": "p"}`:                                                    `{"password":"[redacted]"}`,
		`{"headers": [{"name": "Authorization", "value": "x y"}]}`:                  `{"headers":[{"name":"Authorization","value":"[redacted]"}]}`,
		`{"env": [{"Key": "DB_PASSWORD", "Value": "x y"}, {"Key": "A"}]}`:           `{"env":[{"Key":"DB_PASSWORD","Value":"[redacted]"},{"Key":"A"}]}`,
		`{"env": [{"name": "HOME", "value": "/x"}]}`:                                `{"env":[{"name":"HOME","value":"/x"}]}`,
		`{"use_auth": true, "password": null, "pin": 1234}`:                         `{"password":null,"pin":"[redacted]","use_auth":true}`,
		`{"max_tokens": 4096, "page_token": "abc"}`:                                 `{"max_tokens":4096,"page_token":"abc"}`,
		`{"url": "https://u:hunter2@h/x?token=abc&y=1"}`:                            `{"url":"https://u:[redacted]@h/x?token=[redacted]&y=1"}`,
		`{"args": ["--token", "abc", "-v", "--password=x y", "A_SECRET=q"]}`:        `{"args":["--token","[redacted]","-v","--password=[redacted]","A_SECRET=[redacted]"]}`,
		`{"args": ["--token", 1]}`:                                                  `{"args":["--token",1]}`,
		`{"script": "curl -H \"Authorization: Bearer abc def\" https://example.o"}`: `{"script":"curl -H \"Authorization: [redacted]\" https://example.o"}`,
		`["--token", "abc"]`:                                                        `["--token","[redacted]"]`,
		`"token=abc"`:                                                               `"token=[redacted]"`,
		`{"password":"a","password":"b"}`:                                           `key "password" occurs twice`,
	} {
		if got := redacted(tool, in); got != want {
			t.Errorf("Redact(%s)\n= %s\nwant %s", in, got, want)
		}
	}
	values := tool.SecretValues(tooltest.MustCheck(t, tool, `{"x": "a"}`))
	if len(values) > 0 {
		t.Errorf("SecretValues() = %q, want none", values)
	}
}
