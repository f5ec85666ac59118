package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A model stands in for the language model behind an agent program: an HTTP
// endpoint of this machine that answers in the formats agents speak, and does
// what a script says. It judges nothing and never reaches a network.
//
// It speaks Anthropic's Messages (model_anthropic_test.go) and OpenAI's
// Responses (model_openai_test.go), each as far as agents use it.
type model struct {
	t      *testing.T
	url    string // without a slash at its end
	script []play

	mu    sync.Mutex
	plays int          // how many plays were asked for
	stays map[int]bool // :: number of results → the play that answered then is not over
}

// A turn is one request for an answer, as a model reads it.
type turn struct {
	text    string // all that is neither a tool nor a result: instructions, messages
	tools   []offered
	results []result // of the calls so far, in order
}

// An offered tool is one that the model may call.
type offered struct {
	space       string // OpenAI: the namespace that holds it, if any
	name        string
	description string
	schema      json.RawMessage
}

// A result is what came of a call, as the model reads it.
type result struct {
	text   string
	failed bool // OpenAI does not tell
}

// A play is one turn of the script: what the model answers to what it saw.
type play func(seen turn) move

// A move is the model's answer: the call of a tool, or else its last words.
type move struct {
	words string
	tool  string // as the server lists it; the agent's own prefix is found
	args  map[string]any
	stay  bool // the same play answers the next request, too
}

// call is the model's wish to call a tool of the server's.
func call(tool string, args map[string]any) play {
	if args == nil {
		args = map[string]any{} // nil would be sent as null
	}
	return func(turn) move { return move{tool: tool, args: args} }
}

// newModel starts a model. How far its script is follows from the number of
// results in the request, so that an agent may ask for the same turn again.
func newModel(t *testing.T, script ...play) *model {
	m := &model{t: t, script: script, stays: make(map[int]bool)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/responses", m.responses)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

// read decodes a request into v, and reports whether it could.
func (m *model) read(w http.ResponseWriter, r *http.Request, v any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		m.t.Errorf("the agent sent to %s what is not understood: %v\n%.500s", r.URL.Path, err, body)
		http.Error(w, "not understood", http.StatusBadRequest)
		return false
	}
	return true
}

// answer goes on with the script. The tool of what it returns is the one that
// the agent offers; nil when the model has only words.
func (m *model) answer(seen turn) (move, *offered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.play(len(seen.results))
	m.plays = max(m.plays, n+1)
	if n >= len(m.script) {
		m.t.Errorf("the agent asks for turn %d, and the script is over", len(seen.results)+1)
		return move{words: "The script is over."}, nil
	}
	next := m.script[n](seen)
	m.stays[len(seen.results)] = next.stay
	if next.tool == "" {
		return next, nil
	}
	tool := seen.tool(next.tool)
	if tool == nil {
		m.t.Errorf("turn %d: the tool %q is not offered; of ours are %q", len(seen.results)+1, next.tool, seen.names())
		return move{words: "The tool is missing."}, nil
	}
	return next, tool
}

// play is which play answers a request with so many results. The caller holds
// m.mu.
func (m *model) play(results int) int {
	n := results
	for before := range results {
		if m.stays[before] {
			n--
		}
	}
	return n
}

// played returns how many plays of the script were asked for.
func (m *model) played() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.plays
}

// ours is what the agents put before the names of the server's tools, or the
// namespace that they put them into.
const ours = "mcp__packs"

// tool finds a tool of the server's among those offered, or returns nil.
func (seen turn) tool(name string) *offered {
	for i, tool := range seen.tools {
		if tool.space == ours && tool.name == name || tool.space == "" && tool.name == ours+"__"+name {
			return &seen.tools[i]
		}
	}
	return nil
}

// names returns the names of the server's tools, in order, as the server has
// them.
func (seen turn) names() []string {
	var all []string
	for _, tool := range seen.tools {
		if tool.space == ours {
			all = append(all, tool.name)
		} else if name, ok := strings.CutPrefix(tool.name, ours+"__"); ok {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// last decodes what came of the last call. A tool's text is JSON; an agent may
// put words of its own around it.
func (seen turn) last(t *testing.T) map[string]any {
	t.Helper()
	if len(seen.results) == 0 {
		t.Error("the model has no result yet")
		return nil
	}
	text := seen.results[len(seen.results)-1].text
	begin := strings.Index(text, "{")
	var out map[string]any
	if begin < 0 || json.NewDecoder(strings.NewReader(text[begin:])).Decode(&out) != nil {
		t.Errorf("the result that the model reads is %q, want JSON", text)
	}
	return out
}

// texts joins the texts of content as both formats have it: a string, or a list
// of parts of which some have text.
func texts(content json.RawMessage) string {
	var plain string
	if json.Unmarshal(content, &plain) == nil {
		return plain
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return string(content)
	}
	var all []string
	for _, part := range parts {
		all = append(all, part.Text)
	}
	return strings.Join(all, "\n")
}

// An events is a stream of server-sent events.
type events struct{ w http.ResponseWriter }

func stream(w http.ResponseWriter) events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return events{w}
}

// send sends one event; its data has the event's name as "type", too.
func (e events) send(name string, data map[string]any) {
	data["type"] = name
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // it is made of what was decoded before
	}
	fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, raw)
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}
