package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// serveAll runs ServeStdio over a whole input, and returns its replies as they were
// written.
func serveAll(t *testing.T, srv *Server, input io.Reader) []string {
	t.Helper()
	var out logbuf.Buffer
	if err := wire.ServeStdio(t.Context(), srv, input, &out); err != nil {
		t.Fatalf("ServeStdio = %v", err)
	}
	text := strings.TrimSpace(out.String())
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Errorf("the server wrote %q, which is not JSON", l)
		}
	}
	return lines
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// A message is a line, with any line end and anything that may precede it.
func TestLines(t *testing.T) {
	w := newWorld(t, "")
	for name, input := range map[string]string{
		"newline":        ping + "\n",
		"CRLF":           ping + "\r\n",
		"no newline":     ping,
		"BOM":            "\xef\xbb\xbf" + ping + "\n",
		"BOM and spaces": "  \xef\xbb\xbf \t" + ping + "  \n",
		"empty lines":    "\n\r\n   \n" + ping + "\n\n",
	} {
		got := serveAll(t, w.srv, strings.NewReader(input))
		if want := `{"jsonrpc":"2.0","id":1,"result":{}}`; len(got) != 1 || got[0] != want {
			t.Errorf("%s: the server wrote %q, want %s", name, got, want)
		}
	}
	if got := serveAll(t, w.srv, strings.NewReader("")); len(got) != 0 {
		t.Errorf("for nothing, the server wrote %q", got)
	}
}

// Ids come back exactly as they were written.
func TestIDs(t *testing.T) {
	w := newWorld(t, "")
	for _, id := range []string{`0`, `""`, `77`, `"77"`, `-1`, `9007199254740993`, `-9007199254740993`, `"a\u0041\n\"x"`, `"` + strings.Repeat("i", 5000) + `"`} {
		got := serveAll(t, w.srv, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id)))
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id); len(got) != 1 || got[0] != want {
			t.Errorf("id %s: the server wrote %q, want %s", id, got, want)
		}
	}
}

// TR-04: a line of 100 MB is refused without being kept in memory, and the next
// request is served.
func TestLongLine(t *testing.T) {
	w := newWorld(t, "")
	const size = 100 << 20
	input := io.MultiReader(
		strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"`), &servertest.Repeat{B: 'x', N: size}, strings.NewReader("\"}}\n"),
		strings.NewReader(ping+"\n"),
	)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := serveAll(t, w.srv, input)
	runtime.ReadMemStats(&after)
	if len(got) != 2 || !strings.Contains(got[0], "-32600") || !strings.Contains(got[0], "larger than 8388608 bytes") || !strings.Contains(got[1], `"id":1`) {
		t.Errorf("the server wrote %.300q, want an error that names the limit, and the reply to the next request", got)
	}
	// The buffer doubles until the limit of 8 MiB.
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d MiB were allocated for a line of %d MiB", used>>20, size>>20)
	}
}

// A message of exactly the limit passes; one byte more does not.
func TestLineLimit(t *testing.T) {
	w := newWorld(t, "", limited(Limits{Request: 1000}))
	message := func(size int) string {
		const head, tail = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`, `"}}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	for _, c := range []struct {
		size int
		end  string
		ok   bool
	}{{1000, "\n", true}, {1000, "", true}, {1001, "\n", false}, {1002, "", false}} {
		got := serveAll(t, w.srv, strings.NewReader(message(c.size)+c.end))
		if len(got) != 1 || strings.Contains(got[0], `"result"`) != c.ok {
			t.Errorf("a message of %d bytes and %q: the server wrote %q, want a result: %v", c.size, c.end, got, c.ok)
		}
	}
}

// Deep nesting is refused anywhere in a message, and uses no stack.
func TestDeepNesting(t *testing.T) {
	w := newWorld(t, triage)
	const depth = 100_000
	deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	for name, input := range map[string]string{
		"alone":        deep,
		"in params":    `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + deep + `}`,
		"objects":      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) + `}`,
		"never closed": strings.Repeat("[", depth),
	} {
		got := serveAll(t, w.srv, strings.NewReader(input+"\n"+ping))
		if len(got) != 2 || !strings.Contains(got[0], `"error"`) || !strings.Contains(got[1], `"result"`) {
			t.Errorf("%s: the server wrote %.200q, want an error and the next reply", name, got)
		}
	}
	// Nesting below the decoder's own limit, in the arguments of a call.
	w.answer = decide("once")
	w.initialize()
	w.raw(`{"jsonrpc":"2.0","id":500,"method":"tools/call","params":{"name":"capability_packs_list","arguments":{"query":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}}`)
	if got := result(t, w.receive()); got["isError"] != true {
		t.Errorf("a call with deep arguments = %.200v", got)
	}
}

// startHold returns a world in which a program runs until it is killed, or until
// there is a file "go" in the workspace.
func startHold(t *testing.T) (w *world, call func(id any), running func() (pid string)) {
	t.Helper()
	needShell(t)
	w = newWorld(t, hold)
	w.answer = decide("once")
	w.initialize()
	call = func(id any) {
		w.send(map[string]any{"id": id, "method": "tools/call", "params": map[string]any{
			"name": "capability_packs_exec_best_effort", "arguments": map[string]any{"pack_id": "hold", "command": "./hold.sh"},
		}})
		w.nextQuestion()
	}
	running = func() string {
		path := filepath.Join(w.space(), "pid")
		return strings.TrimSpace(string(awaitFile(t, path)))
	}
	return w, call, running
}

// nextQuestion answers the next question.
func (w *world) nextQuestion() {
	w.t.Helper()
	select {
	case m := <-w.lines:
		if m["method"] != "elicitation/create" {
			w.t.Fatalf("%v came, want a question", m)
		}
		w.question(m)
	case <-time.After(20 * time.Second):
		w.t.Fatal("no question came")
	}
}

// awaitFile reads a file that a program is about to write.
func awaitFile(t *testing.T, path string) []byte {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(20 * time.Second)
	for {
		if data, err := os.ReadFile(path); err == nil && len(data) > 0 {
			return data
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("%s did not appear", path)
		}
	}
}

// awaitLog waits until the audit log has an event.
func (w *world) awaitLog(event string) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(20 * time.Second)
	for {
		for _, e := range w.entries() {
			if string(e.Event) == event {
				return
			}
		}
		select {
		case <-tick.C:
		case <-timeout:
			w.t.Fatalf("the log has no %s", event)
		}
	}
}

// A cancelled call is not answered, and the program that it started is dead. Ids are
// only equal if they have the same type.
func TestCancelRun(t *testing.T) {
	w, call, running := startHold(t)
	call(77)
	pid := running()
	for _, other := range []any{"77", 770, 7, nil, "hold"} {
		w.send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": other}})
	}
	w.request("ping", nil)
	if !alive(t, pid) {
		t.Fatal("the program ended although its call was not cancelled")
	}
	w.send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": 77}})
	w.awaitLog("run.end")
	if alive(t, pid) {
		t.Error("the program of a cancelled call still runs")
	}
	// Too late, and repeated: this has no effect, and the next reply is the ping's.
	w.send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": 77}})
	if got := w.request("ping", nil); got["id"] != float64(w.next) {
		t.Errorf("the next message is %v, want the ping's reply: a cancelled call is not answered", got)
	}
	// Its id is free again once the call is cleaned up.
	for tries := 0; ; tries++ {
		w.send(map[string]any{"id": 77, "method": "ping"})
		got := w.receive()
		if got["id"] == 77.0 && got["result"] != nil {
			break
		}
		if tries == 10_000 {
			t.Fatalf("ping with the id of the cancelled call = %v", got)
		}
	}
	w.close()
	for m := range w.lines {
		t.Errorf("the server also said %v", m)
	}
	for _, e := range w.entries() {
		if e.Event == "run.end" && e.Cause != "cancelled" {
			t.Errorf("the log says that the run ended by %q, want cancelled", e.Cause)
		}
	}
}

// A call is cancelled while its question is open: the question is withdrawn, and a
// later answer allows nothing.
func TestCancelQuestion(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = func(string, map[string]any) map[string]any { return nil }
	w.initialize()
	w.send(map[string]any{"id": "q", "method": "tools/call", "params": map[string]any{
		"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"},
	}})
	ask := <-w.lines
	if ask["method"] != "elicitation/create" {
		t.Fatalf("%v came, want a question", ask)
	}
	w.send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": "q"}})
	withdrawn := <-w.lines
	if p, _ := withdrawn["params"].(map[string]any); withdrawn["method"] != "notifications/cancelled" || p["requestId"] != ask["id"] {
		t.Errorf("%v came, want the question withdrawn", withdrawn)
	}
	w.send(map[string]any{"id": ask["id"], "result": decide("once")("", nil)})
	if got := w.request("ping", nil); got["id"] != float64(w.next) {
		t.Errorf("%v came, want the ping's reply", got)
	}
	for _, e := range w.entries() {
		if e.Decision != "deny" {
			t.Errorf("the log has %+v, want a denial", e)
		}
	}
}

// A question that nobody answers becomes a denial after the configured time, and is
// withdrawn.
func TestNoAnswer(t *testing.T) {
	w := newWorld(t, triage, func(s *setup) { s.gate.Wait = 50 * time.Millisecond })
	w.answer = func(string, map[string]any) map[string]any { return nil }
	w.initialize()
	e := w.fails("denied", "capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	if !strings.Contains(e["message"].(string), "50ms") {
		t.Errorf("the message is %q, want how long was waited", e["message"])
	}
	if len(w.notes) != 1 || w.notes[0]["method"] != "notifications/cancelled" {
		t.Errorf("notes = %v, want the question withdrawn", w.notes)
	}
}

// A second request with the id of one in progress is refused; the first goes on.
func TestDuplicateID(t *testing.T) {
	w, call, running := startHold(t)
	call("twice")
	running()
	w.send(map[string]any{"id": "twice", "method": "ping"})
	if got := w.receive(); got["error"] == nil || got["id"] != "twice" {
		t.Errorf("the second request with the id = %v, want an error", got)
	}
	letGo(t, w)
	if got := result(t, w.receive())["structuredContent"].(map[string]any); got["stdout"] != "let go\n" {
		t.Errorf("the first request = %v", got)
	}
}

func letGo(t *testing.T, w *world) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.space(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The input ends during a run: a run that ends soon is still answered.
func TestEndOfInputDuringRun(t *testing.T) {
	w, call, running := startHold(t)
	call(5)
	running()
	w.in.Close()
	letGo(t, w)
	if got := result(t, w.receive())["structuredContent"].(map[string]any); got["stdout"] != "let go\n" || got["ok"] != true {
		t.Errorf("the run = %v, want its result", got)
	}
	w.close()
}

// The input ends while a question is open: nobody can answer it any more, so it is
// denied at once.
func TestEndOfInputDuringQuestion(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = func(string, map[string]any) map[string]any { return nil }
	w.initialize()
	w.send(map[string]any{"id": 5, "method": "tools/call", "params": map[string]any{
		"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"},
	}})
	if m := <-w.lines; m["method"] != "elicitation/create" {
		t.Fatalf("%v came, want a question", m)
	}
	w.in.Close()
	got := result(t, w.receive())["structuredContent"].(map[string]any)
	// Otherwise the call would have been cancelled later, when its time to finish was
	// over.
	if e, _ := got["error"].(map[string]any); e["code"] != "denied" || e["message"] != "the client could not show the question" {
		t.Errorf("the call = %v, want a denial since the form is gone", got)
	}
}

// When its context is done, the server ends, and so do running programs.
func TestServeStdioStops(t *testing.T) {
	w, call, running := startHold(t)
	call(5)
	pid := running()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, _ := io.Pipe()
	if err := wire.ServeStdio(ctx, w.srv, in, io.Discard); err != nil {
		t.Errorf("ServeStdio with a context that is done = %v, want nil", err)
	}
	if !alive(t, pid) {
		t.Error("another connection's end killed the program of this one")
	}
	letGo(t, w)
	w.receive()
}

// Calls that wait for a person do not block other calls.
func TestManyQuestions(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = func(string, map[string]any) map[string]any { return nil }
	w.initialize()
	calls := 3 * maxConcurrent
	for i := range calls {
		w.send(map[string]any{"id": 1000 + i, "method": "tools/call", "params": map[string]any{
			"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"},
		}})
	}
	var open []any
	for len(open) < calls {
		select {
		case m := <-w.lines:
			if m["method"] != "elicitation/create" {
				t.Fatalf("%v came, want a question", m)
			}
			open = append(open, m["id"])
		case <-time.After(20 * time.Second):
			t.Fatalf("%d of %d questions came", len(open), calls)
		}
	}
	if got := w.request("ping", nil); got["result"] == nil {
		t.Errorf("ping = %v", got)
	}
	w.ok("capability_packs_list", map[string]any{})
	for _, id := range open {
		w.send(map[string]any{"id": id, "result": decide("once")("", nil)})
	}
	var ids []float64
	for range calls {
		reply := w.receive()
		if result(t, reply)["isError"] == true {
			t.Fatalf("a call = %v", reply)
		}
		ids = append(ids, reply["id"].(float64))
	}
	slices.Sort(ids)
	if ids[0] != 1000 || len(slices.Compact(ids)) != calls {
		t.Errorf("%d calls were answered, want %d", len(slices.Compact(ids)), calls)
	}
	var permits int
	for _, e := range w.entries() {
		if e.Decision == "once" && e.Kind == "open" {
			permits++
		}
	}
	if permits != calls {
		t.Errorf("the log has %d decisions, want one for each of %d calls", permits, calls)
	}
}

// More requests at once than are accepted are refused, not kept.
func TestTooManyRequests(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = func(string, map[string]any) map[string]any { return nil }
	w.initialize()
	busy := 0
	for i := range wire.MaxInFlight + 10 {
		w.send(map[string]any{"id": 10_000 + i, "method": "tools/call", "params": map[string]any{
			"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"},
		}})
	}
	for range wire.MaxInFlight + 10 {
		m := <-w.lines
		if e, ok := m["error"].(map[string]any); ok {
			busy++
			if e["code"] != float64(wire.CodeBusy) {
				t.Errorf("%v came, want that the server is busy", m)
			}
		}
	}
	if busy != 10 {
		t.Errorf("%d requests were refused, want 10", busy)
	}
}

// faulty is a library that panics.
type faulty struct {
	fault func() bool
	real  Library
}

func (f *faulty) Catalog(ctx context.Context) *packs.Catalog {
	if f.fault() {
		panic("the secret word is swordfish")
	}
	return f.real.Catalog(ctx)
}

func (f *faulty) Refresh(ctx context.Context, dirs []string) (bool, error) {
	return f.real.Refresh(ctx, dirs)
}

// A panic is answered with a reference, not with its text, and the server goes
// on.
func TestPanic(t *testing.T) {
	bad := false
	w := newWorld(t, triage, func(s *setup) {
		lib, err := packs.NewLibrary(t.Context(), s.packs, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.server.Library = &faulty{fault: func() bool { return bad }, real: lib}
	})
	w.answer = decide("once")
	w.initialize()
	bad = true
	e := w.fails("internal", "capability_packs_list", map[string]any{})
	listed := w.request("tools/list", nil)
	if listed["error"] == nil {
		t.Errorf("tools/list = %v, want an internal error", listed)
	}
	for _, got := range []any{e, listed} {
		if text := fmt.Sprint(got); strings.Contains(text, "swordfish") || strings.Contains(text, "goroutine") || !strings.Contains(text, "call-") {
			t.Errorf("the client gets %v, want a reference and not the panic's text", got)
		}
	}
	reference := e["reference"].(string)
	if log := w.log.String(); !strings.Contains(log, "swordfish") || !strings.Contains(log, reference) {
		t.Errorf("the log does not have the panic's text with the reference %s:\n%s", reference, log)
	}
	bad = false
	w.ok("capability_packs_list", map[string]any{})
}

// A client disconnects without reading: the server still ends.
func TestOutputGone(t *testing.T) {
	w := newWorld(t, triage)
	out, gone := io.Pipe()
	out.Close()
	var input strings.Builder
	for i := range 100 {
		fmt.Fprintf(&input, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
	}
	if err := wire.ServeStdio(t.Context(), w.srv, strings.NewReader(input.String()), gone); err != nil {
		t.Errorf("ServeStdio = %v, want nil", err)
	}
}
