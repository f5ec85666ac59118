//go:build unix

package replicas

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// number returns a setting of "make soak-replicas".
func number(t *testing.T, name string, usual int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s is not a number", name, s)
	}
	return n
}

// Three servers share a store, and people approve calls at all of them. Every approved call
// runs once, and every run is in the log before it starts. "make soak-replicas" has many
// people, who pause between calls, and kills servers meanwhile; the log shows interrupted
// runs as cut.
func TestReplicas(t *testing.T) {
	lasts := time.Duration(number(t, "REPLICAS_SECONDS", 1)) * time.Second
	chats, pause := number(t, "REPLICAS_CHATS", 0), time.Duration(number(t, "REPLICAS_PAUSE", 1))*time.Second
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		used := false
		newLoad := func(t *testing.T, tool tool, people int) *load {
			t.Helper()
			if used {
				e.Empty(t)
			}
			used = true
			return newLoad(t, e.URL(), tool, people)
		}
		t.Run("approvals", func(t *testing.T) {
			l := newLoad(t, opens, 100)
			before := bare(t, e.URL(), len(l.tokens), lasts/4)
			wrote := l.count(e.URL())
			l.run(lasts, 0, 0)
			n := float64(len(l.ran))
			entries, blocks := wrote()
			processors := l.stop()
			after := bare(t, e.URL(), len(l.tokens), lasts/4)
			share := n / l.lasted.Seconds() / ((before + after) / 2)
			t.Logf("the bare engine: %.0f a second before, %.0f after; the servers: %.2f of that", before, after, share)
			t.Logf("for each call, %.1f writes of entries and %.1f of the log; %v of the servers' processors", float64(entries)/n, float64(blocks)/n, processors/time.Duration(n))
		})
		t.Run("runs", func(t *testing.T) {
			l := newLoad(t, runs, 8)
			l.run(lasts, 0, 0)
			l.check()
		})
		if chats == 0 {
			return
		}
		t.Run("pauses", func(t *testing.T) {
			l := newLoad(t, runs, chats)
			l.run(lasts, pause, 0)
			l.check()
		})
		t.Run("kills", func(t *testing.T) {
			l := newLoad(t, runs, chats)
			l.run(lasts, pause, 5*time.Second)
			l.check()
		})
	})
}

// What the store has of a call, in bytes: its question, the claim of its run in the place of
// the question, and a line of the log.
const (
	questionSize = 3100
	claimSize    = 300
	lineSize     = 1100 // with its seal
)

// bare returns how many approvals a second the engine can keep by itself, for as many
// clients as there are people, over as many connections as three servers have. It does what
// servers do for each: a question is made, its answer takes its place, and the log gets a
// line about the decision and one about what it allowed.
func bare(t *testing.T, url string, clients int, lasts time.Duration) float64 {
	t.Helper()
	stores := make([]store.Store, 3)
	for i := range stores {
		s, err := store.Open(t.Context(), store.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores[i] = s
	}
	made := make([]map[string]uint64, clients) // :: key → revision, of each client
	var done atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range clients {
		made[i] = make(map[string]uint64)
		wg.Go(func() {
			var end uint64
			s, name := stores[i%len(stores)], fmt.Sprintf("bare.%d.%d", begin.UnixNano(), i)
			question, claim, line := bytes.Repeat([]byte("x"), questionSize), bytes.Repeat([]byte("x"), claimSize), bytes.Repeat([]byte("x"), lineSize)
			for n := 0; time.Since(begin) < lasts; n++ {
				key := fmt.Sprintf("%s.%d", name, n)
				rev, err := s.Put(t.Context(), key, question, 0, time.Hour)
				if err == nil {
					made[i][key], err = s.Put(t.Context(), key, claim, rev, 0)
				}
				for range 2 {
					if err == nil {
						end, err = s.Append(t.Context(), name, end, line)
					}
				}
				if err != nil {
					t.Errorf("the bare engine: %v", err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	rate := float64(done.Load()) / time.Since(begin).Seconds()
	for i, keys := range made { // the servers follow all entries, also those that expire
		wg.Go(func() {
			for key, rev := range keys {
				if err := stores[i%len(stores)].Delete(t.Context(), key, rev); err != nil {
					t.Errorf("the bare engine: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	return rate
}

// count begins to count the writes of entries and of blocks of the log.
func (w *world) count(url string) (wrote func() (entries, blocks uint64)) {
	w.t.Helper()
	s, err := store.Open(w.t.Context(), store.Options{URL: url})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	now := func() (entries, blocks uint64) {
		w.t.Helper()
		rev, err := s.Put(w.t.Context(), fmt.Sprintf("count.%d", time.Now().UnixNano()), nil, 0, time.Minute)
		if err != nil {
			w.t.Fatal(err)
		}
		chains, err := s.Chains(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		for _, n := range chains { // with each append it grows by one
			blocks += n
		}
		return rev, blocks
	}
	entries, blocks := now()
	return func() (uint64, uint64) {
		e, b := now()
		return e - entries - 1, b - blocks
	}
}

// A load is people who approve calls, and the results.
type load struct {
	*world
	tool  tool
	kills bool

	numbers atomic.Int64
	mu      sync.Mutex
	ran     map[int]string // :: number of a call → the run reported to its client
	unknown map[int]bool   // :: number of a call → whether a server ended before it answered
	history []porcupine.Operation
	took    []time.Duration // times from an answer to the result
	lasted  time.Duration
	odd     map[string]int // :: unexpected reply → count
	busy    atomic.Int64
}

// An answer is an operation on the question of one call.
type answer struct{ number int }

// The outcome of an answer.
type outcome string

const (
	ran     outcome = "ran"     // the answer was accepted, and the call ran
	used    outcome = "used"    // another answer was accepted before
	unknown outcome = "unknown" // no reply
	none    outcome = "none"    // nothing happened, and the client may retry
)

// single models a question that is answered once.
func single() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			by := make(map[int][]porcupine.Operation)
			for _, o := range history {
				n := o.Input.(answer).number
				by[n] = append(by[n], o)
			}
			var all [][]porcupine.Operation
			for _, part := range by {
				all = append(all, part)
			}
			return all
		},
		Init: func() []any { return []any{false} },
		Step: func(state, _, output any) []any {
			taken := state.(bool)
			switch output.(outcome) {
			case ran:
				if taken {
					return nil
				}
				return []any{true}
			case used:
				if !taken {
					return nil
				}
				return []any{true}
			case unknown:
				return []any{taken, true}
			}
			return []any{taken}
		},
	}
	return m.ToModel()
}

func newLoad(t *testing.T, url string, tool tool, people int) *load {
	return &load{world: newWorld(t, url, 3, people, "elicitation"), tool: tool, ran: make(map[int]string), unknown: make(map[int]bool), odd: make(map[string]int)}
}

// run makes every person create and approve calls for a time, with pauses of this average
// length. If every is not zero, a server is killed at that interval.
func (l *load) run(lasts, pause, every time.Duration) {
	l.t.Helper()
	l.kills = every > 0
	ctx, stop := context.WithTimeout(l.t.Context(), lasts)
	defer stop()
	begin := time.Now()
	var wg sync.WaitGroup
	for person := range l.tokens {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(person)))
			for ctx.Err() == nil {
				if pause > 0 {
					select {
					case <-time.After(rand.N(2 * pause)):
					case <-ctx.Done():
						return
					}
				}
				l.approve(ctx, person, r)
			}
		})
	}
	killed := 0
	for every > 0 && ctx.Err() == nil {
		select {
		case <-time.After(every):
			l.kill(killed % 3)
			killed++
		case <-ctx.Done():
		}
	}
	wg.Wait()
	l.lasted = time.Since(begin)
	for i := range l.took {
		l.took[i] = l.took[i].Round(time.Millisecond)
	}
	slices.Sort(l.took)
	if len(l.took) == 0 {
		l.t.Fatal("nothing was approved")
	}
	l.t.Logf("%d people, %d servers killed: %d calls approved, %.0f a second; answer to result: median %v, 99 of 100 within %v; %d times a server was busy; %d answers whose server ended first",
		len(l.tokens), killed, len(l.ran), float64(len(l.ran))/l.lasted.Seconds(), l.took[len(l.took)/2], l.took[len(l.took)*99/100], l.busy.Load(), len(l.unknown))
	if killed > 0 {
		time.Sleep(30 * time.Second) // until the last runs are reported as cut
	}
}

// approve makes one call at one server, and answers its question at another; every fourth
// time at two of them at once.
func (l *load) approve(ctx context.Context, person int, r *rand.Rand) {
	n := int(l.numbers.Add(1))
	all := l.replicas()
	at := r.IntN(len(all))
	asked, err := l.call(ctx, l.tool, person, n, all[at], "")
	if err != nil || asked.state == "" {
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errBusy):
			l.busy.Add(1)
			time.Sleep(50 * time.Millisecond)
		case err == nil:
			l.strange("asked", asked.text)
		}
		return
	}
	answers := 1
	if n%4 == 0 {
		answers = 2
	}
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { l.answer(person, n, asked.state, at+1+i) })
	}
	wg.Wait()
}

// answer answers a question, and retries at other servers if the first one ends.
func (l *load) answer(person, n int, state string, at int) {
	for range 20 {
		all := l.replicas()
		begin := time.Now()
		got, err := l.call(l.t.Context(), l.tool, person, n, all[at%len(all)], state)
		took := time.Since(begin)
		at++
		o := none
		switch {
		case errors.Is(err, errCut):
			o = unknown
		case errors.Is(err, errBusy):
			l.busy.Add(1)
		case got.ran != "":
			o = ran
		case strings.Contains(got.text, "used before"), strings.Contains(got.text, "already used"):
			o = used
		default:
			l.strange("answered", got.text)
		}
		l.mu.Lock()
		l.history = append(l.history, porcupine.Operation{ClientId: n*2 + at%2, Input: answer{n}, Call: begin.UnixNano(), Output: o, Return: begin.Add(took).UnixNano()})
		switch o {
		case ran:
			if other := l.ran[n]; other != "" {
				l.t.Errorf("call %d ran as %s and as %s", n, other, got.ran)
			}
			l.ran[n] = got.ran
			l.took = append(l.took, took)
		case unknown:
			l.unknown[n] = true
		}
		l.mu.Unlock()
		if o == ran || o == used || o == none && err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// strange counts an unexpected reply.
func (l *load) strange(when, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.odd[when+": "+text[:min(len(text), 400)]]++
}

// check compares what the clients were told with the log of all servers and with the files
// that the runs left.
func (l *load) check() {
	l.t.Helper()
	l.stop()
	for text, n := range l.odd {
		if !l.kills || !strings.Contains(text, "ask again") {
			l.t.Errorf("%d times: %s", n, text)
		}
	}
	if res, _ := porcupine.CheckOperationsVerbose(single(), l.history, time.Minute); res != porcupine.Ok {
		l.t.Errorf("the history of answers is %v: some question was answered twice, or never", res)
	}

	files := l.files()
	starts, ends, cut := make(map[string]int), make(map[string]int), make(map[string]int)
	begun, causes := make(map[int]int), make(map[string]int)
	decided := 0
	for _, e := range l.log() {
		switch {
		case e.Event == audit.EventDecision && e.Decision == "once":
			decided++
		case e.Event == audit.EventRunStart:
			n, err := strconv.Atoi(e.Argv[len(e.Argv)-1])
			if err != nil {
				l.t.Fatalf("a start without the number of its call: %v", e.Argv)
			}
			starts[e.Run] = n
			begun[n]++
		case e.Event == audit.EventRunEnd:
			ends[e.Run]++
			causes[e.Cause]++
			if e.Cause == "cut" {
				cut[e.Run]++
			}
		}
	}
	for n, runs := range files {
		if len(runs) > 1 {
			l.t.Errorf("call %d ran %d times: %v", n, len(runs), runs)
		}
		for _, run := range runs {
			if starts[run] != n {
				l.t.Errorf("%s of call %d is not in the log", run, n)
			}
		}
	}
	for n, times := range begun {
		if times > 1 {
			l.t.Errorf("call %d was started %d times", n, times)
		}
	}
	for run, n := range starts {
		// A server that is killed just after it wrote the end of a run has not told the others,
		// so they report the run as cut as well.
		if ends[run] != 1 && !(l.kills && ends[run] == 2 && cut[run] == 1) {
			l.t.Errorf("%s of call %d has %d ends in the log, %d of them cut", run, n, ends[run], cut[run])
		}
	}
	for n, run := range l.ran {
		if starts[run] != n || !slices.Contains(files[n], run) {
			l.t.Errorf("the client of call %d heard of %s, which did not run", n, run)
		}
	}
	if decided < len(starts) {
		l.t.Errorf("%d runs, but %d answers in the log", len(starts), decided)
	}
	if !l.kills && len(starts) != len(l.ran) {
		l.t.Errorf("%d runs began, and clients heard of %d", len(starts), len(l.ran))
	}
	l.t.Logf("the log: %d answers, %d runs, ended as %v", decided, len(starts), causes)
}

// log returns the entries of all servers, after verifying their proofs.
func (w *world) log() []audit.Entry {
	w.t.Helper()
	export := filepath.Join(w.dir, "export")
	command := func(args ...string) []byte {
		w.t.Helper()
		cmd := exec.Command(program, append(args, "--config", w.config)...)
		cmd.Env = w.environment()
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			w.t.Fatalf("%v: %v\n%s%s", args, err, out, &stderr)
		}
		return out
	}
	command("audit", "export", export)
	command("audit", "verify", export)
	var all []audit.Entry
	lines := bufio.NewScanner(bytes.NewReader(command("audit", "show", "--json", "--export", export)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e audit.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			w.t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		all = append(all, e)
	}
	return all
}
