package server

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
)

// said sums a message up: the code of an error, of the protocol or of a tool;
// "result"; or "" for none.
func said(m map[string]any) string {
	if e, ok := m["error"].(map[string]any); ok {
		return fmt.Sprint(e["code"])
	}
	r, ok := m["result"].(map[string]any)
	if !ok {
		return fmt.Sprint(m["method"])
	}
	content, _ := r["structuredContent"].(map[string]any)
	if e, ok := content["error"].(map[string]any); ok {
		return fmt.Sprint(e["code"])
	}
	return "result"
}

// TR-04 and similar cases, on every transport in both eras: each gets the right code
// and, over HTTP, the right status, and the server goes on. Nobody is asked, and
// nothing happens.
func TestBadInput(t *testing.T) {
	const depth = 100_000
	deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	cursor := func(list string) string { return pages.Cursor(list, "a") }
	call := func(args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{$META,"name":"capability_packs_read_file","arguments":` + args + `}}`
	}
	read := func(uri string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{$META,"uri":"` + uri + `"}}`
	}
	list := func(method, cursor string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{$META,"cursor":"` + cursor + `"}}`
	}
	const noSuch, badParams = "-32002", "-32602"
	rows := []struct {
		name, message string
		want          string // see said
		newer         string // the same in the newer era, if that differs
		frame         bool   // it is not a message: over HTTP that is 400 in every era
		status        int    // over Streamable HTTP in the newer era; 0: 200
	}{
		// Not a message.
		{name: "no JSON", message: `{"jsonrpc":"2.0",`, want: "-32700", frame: true},
		{name: "NaN", message: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META,"x":NaN}}`, want: "-32700", frame: true},
		{name: "infinity", message: `{"jsonrpc":"2.0","id":-Infinity,"method":"tools/list"}`, want: "-32700", frame: true},
		{name: "no UTF-8", message: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", want: "-32700", frame: true},
		{name: "deep", message: deep, want: "-32700", frame: true},
		{name: "deep and never closed", message: deep[:depth], want: "-32700", frame: true},
		{name: "deep in params", message: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":` + deep + `}`, want: "-32700", frame: true},
		{name: "deep in arguments", message: call(`{"path":` + deep + `}`), want: "-32700", frame: true},
		{name: "two messages", message: `{"jsonrpc":"2.0","id":1,"method":"tools/list"} {"jsonrpc":"2.0","id":2,"method":"tools/list"}`, want: "-32700", frame: true},
		{name: "a batch", message: `[{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META}}]`, want: "-32600", frame: true},
		{name: "an empty batch", message: `[]`, want: "-32600", frame: true},
		{name: "a word", message: `"ping"`, want: "-32600", frame: true},
		{name: "null", message: `null`, want: "-32600", frame: true},
		{name: "no version of JSON-RPC", message: `{"id":1,"method":"tools/list","params":{$META}}`, want: "-32600", frame: true},
		{name: "the id twice", message: `{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list","params":{$META}}`, want: "-32600", frame: true},
		{name: "the method twice", message: `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{$META}}`, want: "-32600", frame: true},
		{name: "the params twice", message: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META},"params":{$META}}`, want: "-32600", frame: true},
		{name: "a huge id", message: `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"tools/list","params":{$META}}`, want: "-32600", frame: true},
		{name: "a huge exponent for an id", message: `{"jsonrpc":"2.0","id":1e400,"method":"tools/list","params":{$META}}`, want: "-32600", frame: true},
		{name: "no id but null", message: `{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{$META}}`, want: "-32600", frame: true},

		// A message that asks for something that does not exist.
		{name: "an unknown method", message: `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{$META}}`, want: "-32601", status: 404},
		{name: "a method in capitals", message: `{"jsonrpc":"2.0","id":1,"method":"TOOLS/LIST","params":{$META}}`, want: "-32601", status: 404},
		{name: "a notification as a request", message: `{"jsonrpc":"2.0","id":1,"method":"notifications/initialized","params":{$META}}`, want: "-32601", status: 404},
		{name: "a cancellation as a request", message: `{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{$META,"requestId":1}}`, want: "-32601", status: 404},
		{name: "a request as a notification", message: `{"jsonrpc":"2.0","method":"tools/call","params":{$META,"name":"capability_packs_open_docs","arguments":{"pack_id":"triage"}}}`},
		{name: "a reading as a notification", message: `{"jsonrpc":"2.0","method":"resources/read","params":{$META,"uri":"skill://triage/SKILL.md"}}`},
		{name: "a prompt as a notification", message: `{"jsonrpc":"2.0","method":"prompts/get","params":{$META,"name":"triage"}}`},
		{name: "an unknown notification", message: `{"jsonrpc":"2.0","method":"no/such","params":{$META}}`},
		{name: "a name twice", message: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{$META,"name":"capability_packs_list","name":"capability_packs_list","arguments":{}}}`, want: badParams, status: 400},
		{name: "a name in two spellings", message: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{$META,"name":"capability_packs_list","Name":"capability_packs_list","arguments":{}}}`, want: badParams, status: 400},
		{name: "a URI twice", message: `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{$META,"uri":"skill://index.json","uri":"skill://index.json"}}`, want: badParams, status: 400},
		{name: "an argument twice", message: call(`{"pack_id":"triage","path":"SKILL.md","path":"docs/steps.md"}`), want: "invalid_arguments"},
		{name: "a huge number", message: call(`{"pack_id":"triage","path":"SKILL.md","offset":123456789012345678901234567890}`), want: "invalid_arguments"},
		{name: "a huge exponent", message: call(`{"pack_id":"triage","path":"SKILL.md","offset":1e999999999}`), want: badParams, status: 400},
		{name: "less deep in arguments", message: call(`{"path":` + deep[depth-3000:depth+3000] + `}`), want: "invalid_arguments"},
		{name: "many names", message: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META` + manyNames() + `}}`, want: badParams, status: 400},
		{name: "a number for a cursor", message: `{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{$META,"cursor":7}}`, want: badParams, status: 400},

		// Cursors of other lists, and cursors that are none.
		{name: "tools by a cursor of prompts", message: list("tools/list", cursor("prompts/list")), want: badParams, status: 400},
		{name: "prompts by a cursor of resources", message: list("prompts/list", cursor("resources/list")), want: badParams, status: 400},
		{name: "resources by a cursor of skills", message: list("resources/list", cursor("skills/list")), want: badParams, status: 400},
		{name: "templates by a cursor of resources", message: list("resources/templates/list", cursor("resources/list")), want: badParams, status: 400},
		{name: "skills by a cursor of prompts", message: list("skills/list", cursor("prompts/list")), want: badParams, status: 400},
		{name: "a cursor of nobody's", message: list("prompts/list", base64.RawURLEncoding.EncodeToString([]byte("nobody"))), want: badParams, status: 400},

		// URIs that lead elsewhere.
		{name: "a traversal", message: read("skill://triage/../secret.txt"), want: noSuch, newer: badParams, status: 400},
		{name: "an encoded traversal", message: read("skill://triage/%2e%2e/secret.txt"), want: noSuch, newer: badParams, status: 400},
		{name: "encoded twice", message: read("skill://triage/docs%252fsteps.md"), want: noSuch, newer: badParams, status: 400},
		{name: "a traversal, encoded twice", message: read("skill://triage/%252e%252e/secret.txt"), want: noSuch, newer: badParams, status: 400},
		{name: "another scheme", message: read("file:///etc/passwd"), want: noSuch, newer: badParams, status: 400},
		{name: "a URL", message: read("http://127.0.0.1/"), want: noSuch, newer: badParams, status: 400},

		// Cancellations of requests that never existed.
		{name: "cancelling what never was", message: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{$META,"requestId":424242}}`},
		{name: "cancelling nothing", message: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{$META}}`},
		{name: "cancelling an object", message: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{$META,"requestId":{"a":[1]}}}`},

		// Unusual, but valid.
		{name: "BOM and CRLF", message: "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META}}` + "\r", want: "result"},
		{name: "names that nobody knows", message: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META,"x":1},"x":[{"id":2}]}`, want: "result"},
	}
	onEveryLane(t, triage, func(t *testing.T, l *lane) {
		l.initialize(`{}`)
		for i, row := range rows {
			want, status := row.want, 0
			if l.modern && row.newer != "" {
				want = row.newer
			}
			switch {
			case l.web == nil:
			case row.frame:
				status = 400
			case want == "" || !l.own:
				status = 202
			case l.modern && row.status != 0:
				status = row.status
			default:
				status = 200
			}
			// Each has its own id: a request may still be in progress when its answer
			// has arrived.
			code := l.say(strings.Replace(row.message, `"id":1,`, fmt.Sprintf(`"id":%d,`, 700_000+i), 1))
			got := ""
			if want != "" {
				got = said(l.receive())
			}
			if got != want || code() != status {
				t.Errorf("%s: %q with status %d, want %q with %d", row.name, got, code(), want, status)
			}
			l.serves(row.name)
		}
		got := l.w.entries()
		for _, e := range got {
			if e.Event != audit.EventRefusal || e.Code == "" || e.Reason == "" || e.Decision != "" || e.Run != "" {
				t.Errorf("the log has %+v, want refusals only", e)
			}
		}
		if len(got) == 0 {
			t.Error("the log has nothing, want the calls that were refused")
		}
	})
}

func manyNames() string {
	var b strings.Builder
	for i := range maxParams {
		fmt.Fprintf(&b, `,"n%d":1`, i)
	}
	return b.String()
}
