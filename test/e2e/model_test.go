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

// A model stands in for the language model of an agent: a local HTTP endpoint that answers in
// the formats that agents use, following a script. It judges nothing and never uses a
// network.
//
// It supports Anthropic's Messages (model_anthropic_test.go), OpenAI's Responses
// (model_openai_test.go) and Chat Completions (model_chat_test.go), and Gemini's
// generateContent (model_gemini_test.go), as far as agents use them.
type model struct {
	t      *testing.T
	url    string // without a trailing slash
	prefix string // what the agent puts before the names of the server's tools
	search *search
	script []play

	mu    sync.Mutex
	seen  []turn       // all answered requests, in order
	moves map[int]move // :: number of results → the answer to such a request
}

// A search is what an agent offers instead of the tools: its own tool that shows the model
// tools by name, and perhaps another that calls them.
type search struct {
	tool string // takes {"query": "select:NAME"}
	call string // takes {"name": NAME, "arguments": {…}}; empty: tools that were found are offered afterwards
}

// A turn is one request to a model, as the model reads it.
type turn struct {
	prefix  string    // of the model
	text    string    // everything but tools and results: instructions, messages
	tools   []offered // including the agent's own
	results []result  // of all calls of the server's tools so far, in order
}

// An offered tool is a tool that the model may call.
type offered struct {
	space       string // OpenAI's Responses: the namespace that holds it, if any
	name        string
	description string
	schema      json.RawMessage
	bytes       int // size of everything that the request says about it
}

// full is the name with the namespace.
func (o offered) full() string {
	if o.space != "" {
		return o.space + "__" + o.name
	}
	return o.name
}

// A result is the result of a call, as the model reads it.
type result struct {
	tool   string          // its full name; empty if the request does not say
	args   json.RawMessage // arguments of the call; only Chat Completions has them
	text   string
	failed bool // only Anthropic's format has this
}

// A play is one turn of the script: the model's answer to what it saw. It is called once,
// even if the agent repeats the request.
type play func(seen turn) move

// A move is the model's answer: a tool call, or else its final words.
type move struct {
	words string
	tool  string // the server's name, without the agent's prefix
	args  map[string]any
	stay  bool // the same play answers the next request, too
	// lost permits that the agent does not offer the tool; the model then says words.
	lost bool
}

// call returns a play that calls a tool of the server.
func call(tool string, args map[string]any) play {
	if args == nil {
		args = map[string]any{} // nil would be sent as null
	}
	return func(turn) move { return move{tool: tool, args: args} }
}

// newModel starts a model for an agent that puts prefix before the names of the server's
// tools. The number of results in a request determines the position in the script, so an
// agent may repeat a request.
func newModel(t *testing.T, prefix string, script ...play) *model {
	m := &model{t: t, prefix: prefix, script: script, moves: make(map[int]move)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("POST /v1/chat/completions", m.completions)
	mux.HandleFunc("POST /v1beta/models/{call}", m.generate)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

// read decodes a request into v, and reports whether that succeeded.
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

// write sends a complete JSON response.
func (m *model) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		m.t.Logf("the agent did not wait for its answer: %v", err)
	}
}

// arguments returns the arguments of a call as JSON.
func (m *model) arguments(next move) string {
	raw, err := json.Marshal(next.args)
	if err != nil {
		m.t.Errorf("the script's arguments %v are not JSON: %v", next.args, err)
	}
	return string(raw)
}

// answer returns the script's next move, and the tool that the agent offers for it; nil if the
// model has only words. A request without tools is for the agent itself, such as for a
// title, and gets some words.
func (m *model) answer(seen turn) (move, *offered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(seen.tools) == 0 {
		return move{words: "Fine."}, nil
	}
	seen.prefix = m.prefix
	seen.results = m.ours(seen.results)
	m.seen = append(m.seen, seen)
	next, known := m.moves[len(seen.results)]
	if !known {
		n := m.play(len(seen.results))
		if n >= len(m.script) {
			m.t.Errorf("the agent asks for turn %d, and the script is over", len(seen.results)+1)
			return move{words: "The script is over."}, nil
		}
		next = m.script[n](seen)
		m.moves[len(seen.results)] = next
	}
	if next.tool == "" {
		return next, nil
	}
	tool := seen.tool(next.tool)
	if tool == nil && m.search != nil {
		full := m.prefix + next.tool
		if !known {
			next.tool, next.args = m.search.tool, map[string]any{"query": "select:" + full, "max_results": 5}
		} else if m.search.call != "" {
			next.tool, next.args = m.search.call, map[string]any{"name": full, "arguments": next.args}
		}
		tool = seen.any(next.tool)
	}
	if tool == nil {
		if next.lost {
			return move{words: next.words}, nil
		}
		m.t.Errorf("turn %d: the tool %q is not offered; of ours are %q", len(seen.results)+1, next.tool, seen.names())
		return move{words: "The tool is missing."}, nil
	}
	return next, tool
}

// ours returns the results of the server's tools.
func (m *model) ours(results []result) []result {
	var all []result
	for _, r := range results {
		var inner struct {
			Name string `json:"name"`
		}
		if m.search != nil && r.tool == m.search.call && json.Unmarshal(r.args, &inner) == nil {
			r.tool = inner.Name
		}
		r.args = nil
		if r.tool == "" || strings.HasPrefix(r.tool, m.prefix) {
			all = append(all, r)
		}
	}
	return all
}

// play returns the number of the play for a request with this many results. The caller holds
// m.mu.
func (m *model) play(results int) int {
	n := results
	for before := range results {
		if m.moves[before].stay {
			n--
		}
	}
	return n
}

// played returns how many plays of the script were used.
func (m *model) played() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for results := range m.moves {
		n = max(n, m.play(results)+1)
	}
	return n
}

// turns returns the requests that were answered so far.
func (m *model) turns() []turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen)
}

// tool returns a tool of the server among those offered, or nil.
func (seen turn) tool(name string) *offered { return seen.any(seen.prefix + name) }

// any returns a tool by its full name, including the agent's own.
func (seen turn) any(full string) *offered {
	for i, tool := range seen.tools {
		if tool.full() == full {
			return &seen.tools[i]
		}
	}
	return nil
}

// names returns the server's names of its offered tools, in order.
func (seen turn) names() []string {
	var all []string
	for _, tool := range seen.tools {
		if name, ok := strings.CutPrefix(tool.full(), seen.prefix); ok {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// last decodes the result of the last call. A tool's text is JSON; an agent may surround it
// with its own words.
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

// failed checks that the last call failed with a code. An agent may surround the server's
// text with words and brackets, so failed searches for the code.
func (seen turn) failed(t *testing.T, code string) {
	t.Helper()
	if n := len(seen.results); n == 0 || !strings.Contains(unescaped(seen.results[n-1].text), `{"error":{"code":"`+code+`"`) {
		t.Errorf("the model reads %+v, want the error %s", seen.results, code)
	}
}

// unescaped removes the backslashes from text that may have JSON inside JSON strings.
func unescaped(text string) string { return strings.ReplaceAll(text, `\`, "") }

// texts joins the texts of content in the formats' forms: a string, or a list of parts, some
// with text.
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

// An events writes a stream of server-sent events.
type events struct{ w http.ResponseWriter }

func stream(w http.ResponseWriter) events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return events{w}
}

// send sends an event whose data repeats the event's name as "type".
func (e events) send(name string, data map[string]any) {
	data["type"] = name
	fmt.Fprintf(e.w, "event: %s\n", name)
	e.data(data)
}

// data sends an event without a name.
func (e events) data(data map[string]any) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // all of it was decoded before
	}
	fmt.Fprintf(e.w, "data: %s\n\n", raw)
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}
