//go:build unix

package replicas

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
	"github.com/packs-mcp/packs-mcp/test/served"
)

var (
	// brief is [runs] of a client that cannot ask: the call waits for an answer elsewhere.
	brief = tool{name: runs.name, args: runs.args, cannotAsk: true}
	// endless starts a program that leaves the same file and does not end.
	endless = tool{name: runs.name, cannotAsk: true, args: func(n int) map[string]any {
		return map[string]any{"pack_id": "notes", "command": "./go.sh", "args": []string{"endless", strconv.Itoa(n)}}
	}}
)

// A moment is when a server is killed while a call is on its way from a question to its
// result.
type moment struct {
	name string
	tool tool
	// before prepares the server's end, when the question is in the store; nil: nothing.
	before func(k *kills, code string)
	// until returns at the moment. It is called when the answer is in the store; nil means
	// that the server is killed before the answer.
	until func(k *kills, n int)
	// kept says that the answer holds when the call is made again. Otherwise the person is
	// asked again.
	kept   bool
	silent bool // the killed server does not log that it took the answer
	starts int  // how many starts of runs the killed server logs
	ran    int  // how many files its programs leave
	cut    int  // how many runs another server reports as cut
}

// moments are all of them, in the order in which they come.
func moments() []moment {
	const decision, start, end = `"event":"decision"`, `"event":"run.start"`, `"event":"run.end"`
	came := func(k *kills, _ int) { k.wait("the server to write to the log", k.came) }
	return []moment{
		{name: "the question is asked", tool: brief, kept: true},
		{name: "the answer is stored", tool: brief, before: func(k *kills, _ string) { k.proxy.Stall() }, until: func(*kills, int) {}, kept: true},
		{name: "the answer is about to be taken", tool: brief, before: func(k *kills, code string) { k.came = k.proxy.HoldRequest(code) },
			until: func(k *kills, _ int) { k.wait("the server to take the answer", k.came) }, kept: true},
		{name: "the answer is taken", tool: brief, before: func(k *kills, _ string) { k.came = k.proxy.HoldRequest(decision) }, until: came, silent: true, cut: 1},
		{name: "the answer is logged", tool: brief, before: func(k *kills, _ string) { k.came = k.proxy.HoldRequest(start) }, until: came, cut: 1},
		{name: "the start is logged", tool: brief, before: func(k *kills, _ string) { k.proxy.HoldReply(start) },
			until: func(k *kills, n int) { k.logs(audit.EventRunStart, n) }, starts: 1, cut: 1},
		{name: "the program runs", tool: endless, until: func(k *kills, n int) { k.leaves(n) }, starts: 1, ran: 1, cut: 1},
		{name: "the end is logged", tool: brief, before: func(k *kills, _ string) { k.proxy.HoldReply(end) },
			until: func(k *kills, n int) { k.logs(audit.EventRunEnd, n) }, starts: 1, ran: 1, cut: 1},
	}
}

// A server is killed at each step from a question to its result. No answer runs a program
// twice, no program runs without its record, and the call, made again at another server,
// goes on with the answer or asks for another: then nothing ran, or the log says that the
// run was cut. "make soak-replicas" does each 200 times.
func TestKilledAtEachStep(t *testing.T) {
	rounds := number(t, "REPLICAS_KILLS", 1)
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		t.Parallel() // most of the time is waiting until runs are reported as cut
		k := newKills(t, e)
		for range rounds {
			for _, m := range moments() {
				k.round(m)
			}
		}
		k.check()
	})
}

// kills are servers, one of which is killed again and again while the others stay.
type kills struct {
	*world
	proxy  *storetest.Proxy // between the server that is killed and the engine
	came   <-chan struct{}  // closed when that server comes to where the proxy holds it
	mirror *store.Mirror    // what is in the store now
	asks   *store.Feed      // of its questions
	taken  *store.Feed      // of its questions, and of the claims in their places

	asked  map[string]bool   // :: key of a question → next returned it
	read   map[string]uint64 // :: chain → the position up to which it was read
	logged []audit.Entry     // what was read
	rounds []round
}

// A round is one kill. Its index is the number of its call.
type round struct {
	moment
	again string // the run of the call, made again
}

func newKills(t *testing.T, e *storetest.Engine) *kills {
	t.Helper()
	w := newWorld(t, e.URL(), 2, 1, "terminal")
	m, _ := storetest.Replica(t, e.URL(), storeKey)
	return &kills{
		world: w, proxy: e.Proxy(t), mirror: m, asks: m.Feed("q."), taken: m.Feed("q."), asked: make(map[string]bool), read: make(map[string]uint64),
	}
}

// wait waits for an event.
func (k *kills) wait(what string, event <-chan struct{}) {
	k.t.Helper()
	select {
	case <-event:
	case <-time.After(served.Patience):
		k.t.Fatalf("round %d: waiting for %s takes too long", len(k.rounds), what)
	}
}

// next returns the code of the next question in the store.
func (k *kills) next() string {
	k.t.Helper()
	for {
		for _, key := range k.asks.Take() {
			if e, there := k.mirror.Entry(key); there && !k.asked[key] && e.Value[0] == '{' { // no claim
				k.asked[key] = true
				return strings.TrimPrefix(key, "q.")
			}
		}
		k.wait("a question", k.asks.Wake())
	}
}

// decide allows a call once, as its person does in a terminal at a server.
func (k *kills) decide(at *replica, code string) {
	k.t.Helper()
	body, err := json.Marshal(map[string]string{"code": code, "decision": "once"})
	if err != nil {
		k.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(k.t.Context(), http.MethodPost, strings.TrimSuffix(at.url, "/mcp")+"/approvals/control/decide", bytes.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+k.tokens[0])
	r.Header.Set("Content-Type", "application/json")
	res, err := client.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		k.t.Fatalf("round %d: the answer: %s", len(k.rounds), res.Status)
	}
}

// logs waits until the log has an event of a run of the call with a number.
func (k *kills) logs(event audit.Event, n int) {
	k.t.Helper()
	runs := make(map[string]bool)
	for end := time.Now().Add(served.Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		k.readLog()
		for _, e := range k.logged {
			if e.Event == audit.EventRunStart && e.Argv[len(e.Argv)-1] == strconv.Itoa(n) {
				runs[e.Run] = true
			}
			if e.Event == event && runs[e.Run] {
				return
			}
		}
	}
	k.t.Fatalf("round %d: the log gets no %s", len(k.rounds), event)
}

// readLog reads what was added to the log since the last time.
func (k *kills) readLog() {
	k.t.Helper()
	all, err := k.mirror.Chains(k.t.Context())
	for chain := range all {
		if err == nil {
			err = k.mirror.Read(k.t.Context(), chain, k.read[chain], func(pos uint64, block []byte) error {
				k.read[chain] = pos
				for line := range bytes.Lines(block) {
					if e, intact := audit.ParseLine(bytes.TrimSuffix(line, []byte("\n"))); intact {
						k.logged = append(k.logged, e)
					}
				}
				return nil
			})
		}
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// leaves waits until a run of the call with a number left its file.
func (k *kills) leaves(n int) {
	k.t.Helper()
	for end := time.Now().Add(served.Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if len(k.files()[n]) > 0 {
			return
		}
	}
	k.t.Fatalf("round %d: the program does not run", len(k.rounds))
}

// round has a server work on a call, kills it at a moment, and makes the call again at
// another server.
func (k *kills) round(m moment) {
	k.t.Helper()
	n := len(k.rounds)
	k.proxy.Mend()
	victim := k.start("PACKS_MCP_STORE_URL=" + k.proxy.URL())
	type result struct {
		reply
		err error
	}
	call := func(at *replica) <-chan result {
		done := make(chan result, 1)
		go func() {
			got, err := k.call(k.t.Context(), m.tool, 0, n, at, "")
			done <- result{got, err}
		}()
		return done
	}
	first := call(victim)
	code := k.next()
	if m.before != nil {
		m.before(k, code)
	}
	if m.until != nil {
		k.decide(k.all[0], code)
		m.until(k, n)
	}
	_ = victim.cmd.Process.Kill()
	<-victim.ended
	k.proxy.Cut() // what is still on its way is lost
	if r := <-first; !errors.Is(r.err, errCut) {
		k.t.Errorf("round %d, %s: the call to the server that was killed: %s, %v", n, m.name, r.text, r.err)
	}
	if m.until == nil {
		k.decide(k.all[0], code)
	}
	again := call(k.all[1])
	if !m.kept {
		k.decide(k.all[0], k.next())
	}
	r := <-again
	if r.err != nil || r.ran == "" {
		k.t.Errorf("round %d, %s: the call, made again: %s, %v", n, m.name, r.text, r.err)
	}
	k.rounds = append(k.rounds, round{m, r.ran})
}

// ended waits until no run is claimed that has not ended: those of a server that was
// killed are reported as cut.
func (k *kills) ended() {
	k.t.Helper()
	for {
		// Each of them is in the place of the question whose answer allowed it.
		if len(k.mirror.All("q.")) == 0 {
			return
		}
		k.wait("the runs to be reported as cut", k.taken.Wake())
	}
}

// check holds the log of all servers and the files that the runs left against what
// happened.
func (k *kills) check() {
	k.t.Helper()
	k.ended()
	k.stop()
	calls := make(map[string]int) // :: digest of a call → its number
	runs := make(map[string]int)  // :: run → the number of its call
	decided, starts, ends, cut := make(map[string]int), make(map[string]int), make(map[string]int), make(map[string]int)
	log := k.log()
	for _, e := range log {
		if e.Event == audit.EventRunStart {
			n, err := strconv.Atoi(e.Argv[len(e.Argv)-1])
			if err != nil {
				k.t.Fatal(err)
			}
			calls[e.CallDigest], runs[e.Run] = n, n
		}
	}
	for _, e := range log {
		switch {
		case e.Event == audit.EventDecision && e.Run != "":
			decided[e.Run]++
		case e.Event == audit.EventRunStart:
			starts[e.Run]++
		case e.Event == audit.EventRunEnd && e.Cause == "cut":
			cut[e.Run]++
			runs[e.Run] = calls[e.CallDigest]
		case e.Event == audit.EventRunEnd:
			ends[e.Run]++
		}
	}
	files := k.files()
	count := make(map[string]int) // :: moment → how often a server was killed then
	for n, r := range k.rounds {
		count[r.name]++
		begun, reported := 0, 0
		for run, of := range runs {
			if of != n {
				continue
			}
			begun += starts[run]
			reported += cut[run]
			left := slices.Contains(files[n], run)
			again, answers := run == r.again, 1
			if r.silent && !again {
				answers = 0
			}
			switch {
			case decided[run] != answers || starts[run] > 1 || cut[run] > 1 || ends[run] > 1:
				k.t.Errorf("round %d, %s: the log has %d answers, %d starts, %d ends and %d ends as cut of %s", n, r.name, decided[run], starts[run], ends[run], cut[run], run)
			case left && starts[run] == 0:
				k.t.Errorf("round %d, %s: %s ran and is not in the log", n, r.name, run)
			case again && (!left || starts[run] != 1 || ends[run] != 1 || cut[run] != 0), !again && cut[run] != 1:
				k.t.Errorf("round %d, %s: %s has %d starts, %d ends, %d ends as cut; left a file: %v", n, r.name, run, starts[run], ends[run], cut[run], left)
			}
		}
		if begun != r.starts+1 || reported != r.cut || len(files[n]) != r.ran+1 {
			k.t.Errorf("round %d, %s: %d starts, want %d; %d runs reported as cut, want %d; %d files, want %d", n, r.name, begun, r.starts+1, reported, r.cut, len(files[n]), r.ran+1)
		}
	}
	for _, m := range moments() {
		k.t.Logf("killed %d times when %s", count[m.name], m.name)
	}
}
