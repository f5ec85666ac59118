package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// answerables returns requests that can carry an answer, as a client makes them.
func answerables() map[string]map[string]any {
	return map[string]map[string]any{
		"tools/call":     {"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}},
		"prompts/get":    {"name": "triage"},
		"resources/read": {"uri": "skill://triage/SKILL.md"},
	}
}

// TestMalformedAnswersAreRefused: an answer of the wrong shape, or with a state that was made
// up, tampered with, already used or taken from another question, is a protocol error
// in both eras. It is denied and recorded, and spends the state that it names.
func TestMalformedAnswersAreRefused(t *testing.T) {
	yes := map[string]any{"approval": decide("once")("", nil)}
	for name, c := range map[string]struct {
		carry func(state, other string) map[string]any
		spent bool // the state of the question is worthless afterwards
		says  string
	}{
		"responses that are null": {func(string, string) map[string]any { return map[string]any{"inputResponses": nil} }, false, "inputResponses must be an object"},
		"responses in a list": {func(s, _ string) map[string]any {
			return map[string]any{"requestState": s, "inputResponses": []any{yes}}
		}, true, "inputResponses must be an object"},
		"responses that are text": {func(string, string) map[string]any { return map[string]any{"inputResponses": "approval"} }, false, "inputResponses must be an object"},
		"a response in digits": {func(string, string) map[string]any {
			return map[string]any{"inputResponses": map[string]any{"user_name": 12345}}
		}, false, `inputResponses has "user_name", which must be an object`},
		"a response that is null": {func(string, string) map[string]any { return map[string]any{"inputResponses": map[string]any{"x": nil}} }, false, `inputResponses has "x"`},
		"a hostile name": {func(string, string) map[string]any {
			return map[string]any{"inputResponses": map[string]any{"\x1b[2J\u202e": 1}}
		}, false, "which must be an object"},
		"a long name": {func(string, string) map[string]any {
			return map[string]any{"inputResponses": map[string]any{strings.Repeat("x", 100_000): 1}}
		}, false, "which must be an object"},
		"ours, without an action": {func(s, _ string) map[string]any {
			return map[string]any{"requestState": s, "inputResponses": map[string]any{"approval": map[string]any{"content": map[string]any{"decision": "always"}}}}
		}, true, "must be the result of an elicitation"},
		"ours, an action in digits": {func(s, _ string) map[string]any {
			return map[string]any{"requestState": s, "inputResponses": map[string]any{"approval": map[string]any{"action": 1}}}
		}, true, "must be the result of an elicitation"},
		"ours, a list for a form": {func(s, _ string) map[string]any {
			return map[string]any{"requestState": s, "inputResponses": map[string]any{"approval": map[string]any{"action": "accept", "content": []any{yes}}}}
		}, true, "must be the result of an elicitation"},
		"a state that is null": {func(string, string) map[string]any { return map[string]any{"requestState": nil, "inputResponses": yes} }, false, "requestState must be a text"},
		"a state in digits":    {func(string, string) map[string]any { return map[string]any{"requestState": 7, "inputResponses": yes} }, false, "requestState must be a text"},
		"in other letters":     {func(s, _ string) map[string]any { return map[string]any{"RequestState": s, "INPUTRESPONSES": []any{}} }, true, "inputResponses must be an object"},
		"a state that is made up": {func(string, string) map[string]any {
			return map[string]any{"requestState": "x.y", "inputResponses": yes}
		}, false, "not one this server made"},
		"a state that is tampered": {func(s, _ string) map[string]any {
			return map[string]any{"requestState": s + "-TAMPERED", "inputResponses": yes}
		}, false, "not one this server made"},
		"a state and no response": {func(string, string) map[string]any { return map[string]any{"requestState": "x.y"} }, false, "not one this server made"},
		"another question's":      {func(_, o string) map[string]any { return map[string]any{"requestState": o, "inputResponses": yes} }, false, "another call"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, triage, asksAll)
			w.answer = decide("once")
			w.initialize()
			for _, method := range []string{"tools/call", "prompts/get", "resources/read"} {
				for _, modern := range []bool{true, false} {
					what := fmt.Sprintf("%s, modern %v", method, modern)
					params := answerables()[method]
					state := w.state(method, params)
					other := w.state("resources/read", map[string]any{"uri": "skill://triage/docs/steps.md"})
					maps.Copy(params, c.carry(state, other))
					before, asked := len(w.entries()), len(w.asked)
					code, message := w.refused(modern, method, params)
					if code != -32602 || !strings.HasPrefix(message, "denied: ") || !strings.Contains(message, c.says) || len(message) > 1000 || strings.ContainsAny(message, "\x1b\u202e") {
						t.Errorf("%s: %d %.300q, want -32602 and %q", what, code, message, c.says)
					}
					added := w.entries()[before:]
					if len(added) != 1 || added[0].Decision != "deny" || added[0].Channel != "elicitation" || !strings.Contains(added[0].Reason, c.says) || added[0].Client == "" || added[0].Tool == "" {
						t.Errorf("%s: the log has %+v, want one denial that says why", what, added)
					}
					if len(w.asked) != asked {
						t.Errorf("%s: somebody was asked", what)
					}
					// The question itself.
					params = answerables()[method]
					params["requestState"], params["inputResponses"] = state, yes
					if reply := w.modern(method, params); (reply["error"] != nil) != c.spent {
						t.Errorf("%s: then the question's own answer = %v, want it spent: %v", what, reply, c.spent)
					}
				}
			}
		})
	}
}

// state asks a question that the client carries.
func (w *world) state(method string, params map[string]any) string {
	w.t.Helper()
	r := result(w.t, w.modern(method, params))
	state, ok := r["requestState"].(string)
	if r["resultType"] != "input_required" || !ok {
		w.t.Fatalf("%s = %v, want a question", method, r)
	}
	return state
}

// What is not the client's mistake remains a result of the call: an answer without a
// state, unknown keys, a no, and a pack that changed meanwhile.
func TestAnswersThatAreDenied(t *testing.T) {
	for name, c := range map[string]struct {
		carry  func(w *world, state string) map[string]any
		denied bool
	}{
		"without a state": {func(*world, string) map[string]any {
			return map[string]any{"inputResponses": map[string]any{"approval": decide("once")("", nil), "other": map[string]any{"x": 1}}}
		}, true},
		"a no": {func(_ *world, state string) map[string]any {
			return map[string]any{"requestState": state, "inputResponses": map[string]any{"approval": map[string]any{"action": "decline", "content": nil}}}
		}, true},
		"another action": {func(_ *world, state string) map[string]any {
			return map[string]any{"requestState": state, "inputResponses": map[string]any{"approval": map[string]any{"action": "ACCEPT"}}}
		}, true},
		"the pack changed": {func(w *world, state string) map[string]any {
			w.put("triage/docs/new.md", "swapped", 0o644)
			return map[string]any{"requestState": state, "inputResponses": map[string]any{"approval": decide("once")("", nil)}}
		}, true},
		"a yes, and keys that nobody knows": {func(_ *world, state string) map[string]any {
			return map[string]any{"requestState": state, "inputResponses": map[string]any{"approval": decide("once")("", nil), "other": map[string]any{}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, triage)
			w.answer = decide("once")
			call := answerables()["tools/call"]
			maps.Copy(call, c.carry(w, w.state("tools/call", answerables()["tools/call"])))
			got := result(t, w.modern("tools/call", call))
			if got["isError"] == true != c.denied || got["resultType"] != "complete" {
				t.Errorf("tools/call = %v, want a result that is a denial: %v", got, c.denied)
			}
		})
	}
}

// The library refuses a request whose parameters are not an object.
func TestNoAnswerIsCarried(t *testing.T) {
	w := newWorld(t, triage)
	w.initialize()
	for _, params := range []string{`[]`, `"x"`, `7`} {
		w.raw(`{"jsonrpc":"2.0","id":99,"method":"tools/call","params":` + params + `}`)
		if e, _ := w.receive()["error"].(map[string]any); e == nil || !slices.Contains([]float64{-32602, -32600}, e["code"].(float64)) {
			t.Errorf("params %s: %v, want an error", params, e)
		}
	}
}

// An answer that can be read in two ways allows nothing in the older era either: the one
// that counts must not depend on who reads it.
func TestAnswersWithTwoReadings(t *testing.T) {
	for name, result := range map[string]string{
		"two decisions":              `{"action":"accept","content":{"decision":"deny","decision":"once"}}`,
		"the same, with an escape":   `{"action":"accept","content":{"decision":"deny","d\u0065cision":"once"}}`,
		"two actions":                `{"action":"decline","action":"accept","content":{"decision":"once"}}`,
		"an action in other letters": `{"action":"decline","Action":"accept","content":{"decision":"once"}}`,
		"a form in other letters":    `{"action":"accept","content":{"decision":"deny"},"Content":{"decision":"once"}}`,
	} {
		w := newWorld(t, triage)
		w.answer = func(string, map[string]any) map[string]any { return nil }
		w.initialize()
		w.send(map[string]any{"id": "q", "method": "tools/call", "params": map[string]any{
			"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"},
		}})
		ask := <-w.lines
		id, err := json.Marshal(ask["id"])
		if err != nil || ask["method"] != "elicitation/create" {
			t.Fatalf("%v came, %v; want a question", ask, err)
		}
		w.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
		if m := <-w.lines; m["id"] != "q" || !strings.Contains(fmt.Sprint(m), "denied") {
			t.Errorf("%s: %v came, want a denial", name, m)
		}
		for _, e := range w.entries() {
			if e.Event == "decision" && e.Decision != "deny" {
				t.Errorf("%s: the log has %+v", name, e)
			}
		}
	}
}
