package server

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// asksAll does not believe any client that a person chose a prompt.
func asksAll(s *setup) { s.gate.Prompts = gate.PromptsAsk }

// TestPromptsThatAsk: if the client's word is not enough, a prompt is asked about
// like the model's calls, in both eras, and only happens if a person allows it.
func TestPromptsThatAsk(t *testing.T) {
	for name, c := range map[string]struct {
		option option
		says   string // in the question
	}{
		"configured": {asksAll, "the client says that a person chose it"},
		"a rule asks": {func(s *setup) {
			s.gate.Rules = []rules.Rule{{Effect: rules.Ask, Pack: "acme/*", Where: "config.yaml:1"}}
		}, "the client says that a person chose it"},
		"not trusted":       {func(s *setup) { s.packs.Roots[0].Trust = packs.TrustUntrusted }, "NOT TRUSTED"},
		"hidden characters": {func(*setup) {}, "invisible character"},
	} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, modern %v", name, modern), func(t *testing.T) {
				w := newWorld(t, prompted, c.option)
				prompt := "acme__deep"
				if name == "hidden characters" {
					w.put("acme/deep/SKILL.md", "---\nname: deep\ndescription: Lies deeper.\n---\nFor\u200b people.\n", 0o644)
					if err := w.lib.Rescan(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				get := func(decision string, params map[string]any) (reply map[string]any, question string) {
					w.answer = decide(decision)
					if !modern {
						before := len(w.asked)
						reply = w.request("prompts/get", params)
						return reply, strings.Join(w.asked[before:], "\n---\n")
					}
					r := result(t, w.modern("prompts/get", params))
					if r["resultType"] != "input_required" || r["messages"] != nil {
						t.Fatalf("prompts/get %v = %v, want a question", params, r)
					}
					form := r["inputRequests"].(map[string]any)["approval"].(map[string]any)["params"].(map[string]any)
					again := map[string]any{"requestState": r["requestState"], "inputResponses": map[string]any{"approval": decide(decision)("", nil)}}
					maps.Copy(again, params)
					return w.modern("prompts/get", again), form["message"].(string)
				}
				w.answer = decide("once")
				w.initialize()
				for _, params := range []map[string]any{{"name": prompt}, {"name": "attach", "arguments": map[string]any{"pack_id": "acme/deep"}}} {
					if name == "hidden characters" && params["name"] == "attach" {
						continue // nothing of the document is given
					}
					reply, question := get("once", params)
					message(t, reply)
					if !says(question, c.says) || strings.Count(question, "\n---\n") > 0 {
						t.Errorf("%v is asked about with\n%s\nwant one question with %q", params, question, c.says)
					}
					last := w.entries()[len(w.entries())-1]
					if last.Decision != "once" || last.Channel != "elicitation" {
						t.Errorf("the log has %+v, want a person's answer", last)
					}
					reply, _ = get("deny", params)
					if e, _ := reply["error"].(map[string]any); e["code"] != float64(toolerr.RPCNotGiven) || reply["result"] != nil {
						t.Errorf("%v, denied = %v, want %d", params, reply, toolerr.RPCNotGiven)
					}
				}
				// Taking something away needs no question.
				asked := len(w.asked)
				message(t, w.prompt("detach", map[string]any{"pack_id": "acme/deep"}))
				if len(w.asked) != asked {
					t.Errorf("detaching asks %q", w.asked[asked:])
				}
			})
		}
	}
}

// If nobody can be asked about a prompt in the client, it waits for the page and the
// terminal, as a call does. Without these it is denied.
func TestPromptsThatWait(t *testing.T) {
	for _, modern := range []bool{false, true} {
		w := newWorld(t, prompted, asksAll, everywhere(50*time.Millisecond))
		get := w.request
		if modern {
			get = w.modern
		} else {
			w.initialize()
		}
		params := map[string]any{"name": "review", "arguments": map[string]any{"arguments": "main.go"}}
		code, text := w.refused(modern, "prompts/get", params)
		p := w.pending(1)[0]
		if code != toolerr.RPCNotGiven || !strings.HasPrefix(text, "approval_pending: ") || !strings.Contains(text, p.Code) {
			t.Errorf("modern %v: %d %q, want that it waits as %s", modern, code, text, p.Code)
		}
		w.decide(p.Code, queue.Once)
		if got := message(t, get("prompts/get", params)); !strings.HasSuffix(got, "Review main.go.\n") {
			t.Errorf("modern %v: after the answer: %q", modern, got)
		}
		w.pending(0)

		w = newWorld(t, prompted, asksAll)
		if !modern {
			w.initialize()
		}
		if code, text := w.refused(modern, "prompts/get", params); code != toolerr.RPCNotGiven || !strings.Contains(text, "nobody could be asked") {
			t.Errorf("modern %v, nobody to ask: %d %q, want a denial", modern, code, text)
		}
	}
}

// TestPromptsOverHTTP: anybody with the token could claim that a person chose a
// prompt, so a person is asked, under the name of the token.
func TestPromptsOverHTTP(t *testing.T) {
	w := newWorld(t, prompted)
	s := newSite(t, w)
	for name, c := range map[string]*servertest.Client{"older": s.Older(tokenAda, decide("once")), "newer": s.Newer(tokenAda, decide("once"))} {
		message(t, c.Ask("prompts/get", map[string]any{"name": "review"}))
		if len(c.Asked) != 1 || !says(c.Asked[0], "the client says that a person chose it") || !says(c.Asked[0], `for: "ada"`) {
			t.Errorf("%s: asked %q, want one question about ada's prompt", name, c.Asked)
		}
		message(t, c.Ask("prompts/get", map[string]any{"name": "attach", "arguments": map[string]any{"pack_id": "review"}}))
		message(t, c.Ask("prompts/get", map[string]any{"name": "detach", "arguments": map[string]any{"pack_id": "review"}}))
		if len(c.Asked) != 2 || !says(c.Asked[1], "Attach pack review?") {
			t.Errorf("%s: asked %q, want one more, about attaching", name, c.Asked)
		}
	}
	// A client that cannot ask gets nothing.
	mute := s.Newer(tokenGrace, nil)
	if e, _ := mute.Ask("prompts/get", map[string]any{"name": "review"})["error"].(map[string]any); e["code"] != float64(toolerr.RPCNotGiven) {
		t.Errorf("a client that cannot ask got %v, want a denial", e)
	}
	// Unless the configuration believes the client.
	w = newWorld(t, prompted, func(s *setup) { s.gate.Prompts = gate.PromptsAllow })
	message(t, newSite(t, w).Newer(tokenGrace, nil).Ask("prompts/get", map[string]any{"name": "review"}))
	for _, e := range w.entries() {
		if e.Caller != "grace" || e.Channel != "prompt" || e.Reason != "the client says that a person chose it" {
			t.Errorf("the log has %+v, want grace's client's word", e)
		}
	}
}

// TestAlwaysOfAnUnnamedToken: what the user of this machine always allows does not
// hold for a token without a name, unless only this machine can reach the server.
func TestAlwaysOfAnUnnamedToken(t *testing.T) {
	for name, c := range map[string]struct {
		options httpd.Options
		asked   int
	}{
		"on the network":                   {httpd.Options{}, 1},
		"on this machine":                  {httpd.Options{Local: true}, 0},
		"on this machine, by a local name": {httpd.Options{Local: true, PublicURL: "http://localhost:8080"}, 0},
		"behind a proxy":                   {httpd.Options{Local: true, PublicURL: "https://packs.example.com"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, triage, func(s *setup) { s.gate.Grants = new(kept) })
			w.answer = decide("always")
			w.initialize()
			open := map[string]any{"pack_id": "triage"}
			w.ok("capability_packs_open_docs", open)
			s := newSite(t, w, func(o *httpd.Options) {
				*o = c.options
				o.Credentials = []httpd.Credential{{Token: tokenAda}}
			})
			for _, client := range []*servertest.Client{s.Older(tokenAda, decide("once")), s.Newer(tokenAda, decide("once"))} {
				client.OK("capability_packs_open_docs", open)
				if len(client.Asked) != c.asked {
					t.Errorf("modern %v: asked %d times, want %d", client.Modern, len(client.Asked), c.asked)
				}
			}
		})
	}
}
