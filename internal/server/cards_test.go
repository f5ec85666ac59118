package server

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/card"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
)

// cards makes a server offer the tools for cards, and ask over these channels.
func cards(channels ...string) option {
	return func(s *setup) {
		s.gate.Channels, s.server.Cards = channels, slices.Contains(channels, queue.ChannelApp)
	}
}

// The capabilities of clients.
var (
	showsApps = map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}}}}
	plainForm = map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}
)

func appForm(settings map[string]any) map[string]any {
	return map[string]any{"elicitation": map[string]any{"form": map[string]any{}}, "extensions": map[string]any{"io.modelcontextprotocol/ui": settings}}
}

// A declaring is a client of either era that declares the capabilities that a test
// gives it. It keeps everything that it receives.
type declaring struct {
	*world
	modern bool
	caps   map[string]any
	wire   []string
}

func declares(t *testing.T, w *world, modern bool, caps map[string]any) *declaring {
	t.Helper()
	c := &declaring{world: w, modern: modern, caps: caps}
	if !modern {
		c.ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": caps, "clientInfo": map[string]any{"name": "test", "version": "1"}})
		c.send(map[string]any{"method": "notifications/initialized"})
	}
	return c
}

// ask makes a request and returns the next message that is not a notification: a
// reply, or a question of the older era.
func (c *declaring) ask(method string, params map[string]any) map[string]any {
	c.t.Helper()
	c.next++
	if c.modern {
		if params == nil {
			params = map[string]any{}
		}
		params["_meta"] = map[string]any{"io.modelcontextprotocol/clientCapabilities": c.caps}
		params = withMeta(params, false)
	}
	c.send(map[string]any{"id": c.next, "method": method, "params": params})
	return c.get()
}

func (c *declaring) get() map[string]any {
	c.t.Helper()
	for m := range c.lines {
		raw, err := json.Marshal(m)
		if err != nil {
			c.t.Fatal(err)
		}
		c.wire = append(c.wire, string(raw))
		if m["method"] == nil || m["id"] != nil {
			return m
		}
	}
	c.t.Fatal("the server closed the connection")
	return nil
}

// call calls a tool and returns its result.
func (c *declaring) call(name string, args map[string]any) map[string]any {
	c.t.Helper()
	return result(c.t, c.ask("tools/call", map[string]any{"name": name, "arguments": args}))
}

// elicited returns the parameters of the question that a call leads to, and a
// function that answers it.
func (c *declaring) elicited(name string, args map[string]any) (params map[string]any, answer func(decision string) map[string]any) {
	c.t.Helper()
	m := c.ask("tools/call", map[string]any{"name": name, "arguments": args})
	said := func(decision string) map[string]any {
		return map[string]any{"action": "accept", "content": map[string]any{"decision": decision}}
	}
	if !c.modern {
		if m["method"] != "elicitation/create" {
			c.t.Fatalf("the server sent %v, want a question", m)
		}
		return m["params"].(map[string]any), func(decision string) map[string]any {
			c.send(map[string]any{"id": m["id"], "result": said(decision)})
			return result(c.t, c.get())
		}
	}
	r := result(c.t, m)
	asked := r["inputRequests"].(map[string]any)["approval"].(map[string]any)
	return asked["params"].(map[string]any), func(decision string) map[string]any {
		return result(c.t, c.ask("tools/call", map[string]any{
			"name": name, "arguments": args, "requestState": r["requestState"], "inputResponses": map[string]any{"approval": said(decision)},
		}))
	}
}

func eras(t *testing.T, f func(t *testing.T, modern bool)) {
	t.Run("2025-11-25", func(t *testing.T) { f(t, false) })
	t.Run("2026-07-28", func(t *testing.T) { f(t, true) })
}

// A client that declares that it can render a question as a card is told about our
// card, with the facts. The message has all of them, too. Other clients are not told.
func TestElicitationCard(t *testing.T) {
	const mime = "text/html;profile=mcp-app"
	empty := map[string]any{}
	for name, c := range map[string]struct {
		caps map[string]any
		want bool
	}{
		"as the extension says":  {appForm(map[string]any{"mimeTypes": []string{"text/plain", mime}, "elicitation": empty}), true},
		"a form alone":           {plainForm, false},
		"no elicitation as apps": {appForm(map[string]any{"mimeTypes": []string{mime}}), false},
		"it is null":             {appForm(map[string]any{"mimeTypes": []string{mime}, "elicitation": nil}), false},
		"it is true":             {appForm(map[string]any{"mimeTypes": []string{mime}, "elicitation": true}), false},
		"another type":           {appForm(map[string]any{"mimeTypes": []string{"text/html"}, "elicitation": empty}), false},
		"no types":               {appForm(map[string]any{"elicitation": empty}), false},
		"a type":                 {appForm(map[string]any{"mimeTypes": mime, "elicitation": empty}), false},
	} {
		eras(t, func(t *testing.T, modern bool) {
			w := newWorld(t, triage)
			client := declares(t, w, modern, c.caps)
			params, answer := client.elicited("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
			channel := queue.ChannelElicitation
			meta, has := params["_meta"].(map[string]any)
			if has != c.want {
				t.Fatalf("%s: _meta = %v, want one: %v", name, params["_meta"], c.want)
			}
			if c.want {
				channel = queue.ChannelCard
				if diff := cmp.Diff(map[string]any{"resourceUri": calls.CardURI}, meta["ui"]); diff != "" {
					t.Errorf("%s: _meta.ui (-want +got):\n%s", name, diff)
				}
				var q card.Question
				raw, _ := json.Marshal(meta[calls.CardKey])
				if err := json.Unmarshal(raw, &q); err != nil || q.Card.Title != "Open the documents of pack triage?" || len(q.Choices) < 2 || q.Secret != "" || q.Limit != "" {
					t.Errorf("%s: the card gets %s, %v", name, raw, err)
				}
				message := params["message"].(string)
				for _, f := range q.Card.Facts {
					if !strings.Contains(message, f.Label+": "+f.Value+"\n") {
						t.Errorf("%s: the message does not have the fact %s: %s", name, f.Label, f.Value)
					}
				}
				if len(q.Card.Facts) < 3 {
					t.Errorf("%s: the card gets the facts %v", name, q.Card.Facts)
				}
			}
			if r := answer("once"); r["isError"] == true {
				t.Errorf("%s: the answer does not count: %v", name, r)
			}
			if e := w.decided()[0]; e.Decision != "once" || e.Channel != channel {
				t.Errorf("%s: the log has %s by %q, want once by %q", name, e.Decision, e.Channel, channel)
			}
		})
	}
}

// decided returns the decisions in the log, except those about metadata.
func (w *world) decided() []audit.Entry {
	return slices.DeleteFunc(w.entries(), func(e audit.Entry) bool { return e.Event != audit.EventDecision || e.Kind == "list" })
}

// The card's document can be read without a question. It is in no list, and holds
// nothing about any call.
func TestReadCard(t *testing.T) {
	eras(t, func(t *testing.T, modern bool) {
		w := newWorld(t, triage)
		c := declares(t, w, modern, showsApps)
		got := objects(result(t, c.ask("resources/read", map[string]any{"uri": calls.CardURI}))["contents"])
		want := []map[string]any{{
			"uri": calls.CardURI, "mimeType": "text/html;profile=mcp-app", "text": card.Chat(),
			"_meta": map[string]any{"ui": map[string]any{"prefersBorder": false}},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("resources/read (-want +got):\n%.2000s", diff)
		}
		if raw, _ := json.Marshal(c.ask("resources/list", nil)); strings.Contains(string(raw), "ui://") {
			t.Errorf("resources/list has the card: %s", raw)
		}
		for _, uri := range []string{"ui://packs-mcp/other", "ui://packs-mcp", "UI://packs-mcp/approval"} {
			if reply := c.ask("resources/read", map[string]any{"uri": uri}); reply["error"] == nil {
				t.Errorf("resources/read of %s = %v, want an error", uri, reply)
			}
		}
	})
}

const (
	approvalsName = "capability_packs_approvals"
	decideName    = "capability_packs_decide"
)

// The tools for cards are only offered to clients that show cards and cannot ask, and
// only if the user chose them.
func TestCardTools(t *testing.T) {
	all := []string{queue.ChannelElicitation, queue.ChannelPage, queue.ChannelTerminal, queue.ChannelApp}
	renders := appForm(map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}, "elicitation": map[string]any{}})
	for name, c := range map[string]struct {
		channels []string
		caps     map[string]any
		want     bool
	}{
		"shows cards":                  {all, showsApps, true},
		"not chosen":                   {all[:3], showsApps, false},
		"shows none":                   {all, map[string]any{}, false},
		"can ask":                      {all, renders, false},
		"can ask, and is not to do so": {all[1:], renders, true},
	} {
		eras(t, func(t *testing.T, modern bool) {
			w := newWorld(t, triage, cards(c.channels...))
			client := declares(t, w, modern, c.caps)
			ui := make(map[string]any)
			for _, tool := range objects(result(t, client.ask("tools/list", nil))["tools"]) {
				if n := tool["name"].(string); n == approvalsName || n == decideName {
					ui[n] = tool["_meta"].(map[string]any)["ui"]
				}
			}
			want := map[string]any{}
			if c.want {
				want[approvalsName] = map[string]any{"resourceUri": calls.CardURI, "visibility": []any{"model"}}
				want[decideName] = map[string]any{"visibility": []any{"app"}}
			}
			if diff := cmp.Diff(want, ui); diff != "" {
				t.Errorf("%s: tools/list (-want +got):\n%s", name, diff)
			}
			if c.want {
				return
			}
			for _, tool := range []string{approvalsName, decideName} {
				reply := client.ask("tools/call", map[string]any{"name": tool, "arguments": map[string]any{}})
				if raw, _ := json.Marshal(reply); reply["error"] == nil && !strings.Contains(string(raw), "not_found") {
					t.Errorf("%s: %s = %s, want that there is none", name, tool, raw)
				}
			}
		})
	}
}

// The whole sequence: the call returns, the card is shown, the person answers, the
// call is made again. Only the card's _meta holds what the answer needs.
func TestCardRoad(t *testing.T) {
	eras(t, func(t *testing.T, modern bool) {
		w := newWorld(t, triage, cards(queue.ChannelApp))
		c := declares(t, w, modern, showsApps)
		open := map[string]any{"pack_id": "triage"}
		for _, decision := range []string{"once", "deny"} {
			pending := c.call("capability_packs_open_docs", open)
			if raw, _ := json.Marshal(pending); pending["isError"] != true || !strings.Contains(string(raw), "approval_pending") || !strings.Contains(string(raw), approvalsName) {
				t.Fatalf("the call = %s, want it pending, and which tool shows it", raw)
			}
			shown := c.call(approvalsName, map[string]any{})
			about := shown["_meta"].(map[string]any)[calls.CardKey].(map[string]any)
			questions := objects(about["questions"])
			if len(questions) != 1 || about["decide"] != decideName || shown["isError"] == true {
				t.Fatalf("%s = %v, want one question", approvalsName, shown)
			}
			secret := questions[0]["secret"].(string)
			if got := c.call(decideName, map[string]any{"secret": secret, "decision": decision}); got["structuredContent"].(map[string]any)["recorded"] != true {
				t.Fatalf("%s = %v, want it recorded", decideName, got)
			}
			if again := c.call("capability_packs_open_docs", open); (again["isError"] == true) != (decision == "deny") {
				t.Errorf("after %q the call = %v", decision, again)
			}
			if got := c.call(decideName, map[string]any{"secret": secret, "decision": "once"}); got["structuredContent"].(map[string]any)["recorded"] != false {
				t.Errorf("the answer once more = %v, want it to count for nothing", got)
			}

			// No model sees it: it is not in a result's content, in a list, or in the
			// log.
			delete(shown, "_meta")
			raw, _ := json.Marshal(shown)
			for _, line := range append(slices.DeleteFunc(slices.Clone(c.wire), func(l string) bool { return strings.Contains(l, `"questions":`) }), string(raw)) {
				if strings.Contains(line, secret) || strings.Contains(line, secret[strings.Index(secret, ".")+1:]) {
					t.Errorf("the secret is in %s", line)
				}
			}
			log, err := os.ReadFile(w.audit)
			if err != nil || strings.Contains(string(log), secret[strings.Index(secret, ".")+1:]) || strings.Contains(w.log.String(), secret) {
				t.Errorf("the secret is in a log (%v)", err)
			}
		}
		var got []string
		for _, e := range w.decided() {
			got = append(got, e.Decision+" "+e.Channel)
		}
		if want := []string{"pending ", "once app", "once app", "pending ", "deny app", "deny app"}; !slices.Equal(got, want) {
			t.Errorf("the log has %q, want %q", got, want)
		}
		if empty := c.call(approvalsName, map[string]any{}); empty["structuredContent"].(map[string]any)["waiting"] != 0.0 {
			t.Errorf("%s = %v, want that nothing waits", approvalsName, empty)
		}
	})
}

// A model that answers by itself, with everything that it can know, allows nothing.
// What waits is denied, and after three attempts there are no more cards.
func TestModelDecides(t *testing.T) {
	eras(t, func(t *testing.T, modern bool) {
		w := newWorld(t, triage, cards(queue.ChannelApp))
		c := declares(t, w, modern, showsApps)
		open := map[string]any{"pack_id": "triage"}
		for n, forge := range []func(code string) map[string]any{
			func(code string) map[string]any { return map[string]any{"secret": code, "decision": "once"} },
			func(code string) map[string]any { return map[string]any{"decision": "once", "code": code} },
			func(string) map[string]any { return map[string]any{} },
		} {
			pending := c.call("capability_packs_open_docs", open)["structuredContent"].(map[string]any)["error"].(map[string]any)
			code, _ := pending["approval_code"].(string)
			if code == "" {
				t.Fatalf("the call = %v, want it pending", pending)
			}
			if n == 0 { // the model looks, too
				c.call(approvalsName, map[string]any{})
			}
			if got := c.call(decideName, forge(code)); got["structuredContent"].(map[string]any)["recorded"] != false {
				t.Errorf("%s = %v, want it to count for nothing", decideName, got)
			}
			again := c.call("capability_packs_open_docs", open)
			if raw, _ := json.Marshal(again); again["isError"] != true || !strings.Contains(string(raw), "no person decided this") {
				t.Errorf("afterwards the call = %s, want it denied", raw)
			}
		}
		for _, tool := range []string{approvalsName, decideName} {
			if raw, _ := json.Marshal(c.call(tool, map[string]any{"secret": "x", "decision": "once"})); !strings.Contains(string(raw), "not_found") && !strings.Contains(string(raw), "invalid_arguments") {
				t.Errorf("after three tries %s = %s", tool, raw)
			}
		}
		if raw, _ := json.Marshal(c.ask("tools/list", nil)); strings.Contains(string(raw), decideName) {
			t.Error("after three tries the tools are still listed")
		}
		for _, e := range w.decided() {
			if e.Decision == "once" {
				t.Errorf("the log has %+v", e)
			}
		}
	})
}
