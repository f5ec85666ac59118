//go:build unix

package approvals_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// said is what clients were told before their servers were killed.
type said struct {
	mu   sync.Mutex
	runs []string // that ended
	keep []string // commands that were always allowed
}

// Servers are killed at random moments of their work, while others continue.
// APPROVALS_KILLS sets how often.
func TestKilledServers(t *testing.T) {
	const slots = 3
	kills := number(t, "APPROVALS_KILLS", 20)
	w := newWorld(t, triage)
	w.damaged = true // there may be a torn line, and calls without a reply are denied
	w.put("home/config.yaml", busyRules)
	s := new(said)
	tickets := make(chan int, kills)
	for i := range kills {
		tickets <- i
	}
	close(tickets)
	var wg sync.WaitGroup
	for range slots {
		wg.Go(func() {
			for i := range tickets {
				w.loadAndKill(i, s)
			}
		})
	}
	wg.Wait()

	r, err := audit.Verify(w.log())
	if err != nil || !r.OK {
		t.Errorf("Verify = %+v, %v, want nothing but torn lines", r.Problems, err)
	}
	for _, p := range r.Problems {
		if p.Kind != audit.Torn {
			t.Errorf("Verify found %v, want nothing but torn lines", p)
		}
	}
	for _, run := range r.Runs {
		if !run.Started() {
			t.Errorf("the log has the end of %s and not its start", run.Line.Entry.Run)
		}
	}
	started, ended, always := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for _, e := range w.entries() {
		switch {
		case e.Event == audit.EventRunStart:
			started[e.Run] = true
		case e.Event == audit.EventRunEnd:
			ended[e.Run] = true
		case e.Decision == "always":
			for word := range strings.SplitSeq(e.Args.String(), `"`) {
				always[word] = true
			}
		}
	}
	for _, run := range w.runs() {
		if !started[run] {
			t.Errorf("%s ran, and the log does not have its start", run)
		}
	}
	for _, run := range s.runs {
		if !ended[run] {
			t.Errorf("the client was told the end of %s, and the log was not", run)
		}
	}
	words, kept := w.keptWords()
	for _, word := range s.keep {
		if !slices.Contains(words, word) {
			t.Errorf("the grant for %s is lost", word)
		}
	}
	for _, word := range words {
		if !always[word] {
			t.Errorf("there is a grant for %s, which is not in the log", word)
		}
	}
	if unique := slices.Compact(slices.Clone(words)); len(unique) != len(words) {
		t.Errorf("a command has two grants: %q", words)
	}

	// What dead servers left behind is removed, and the next one starts and works.
	announced := func() int {
		all, err := filepath.Glob(filepath.Join(w.home, "run", "*.json"))
		if err != nil {
			t.Error(err)
		}
		return len(all)
	}
	before := announced()
	if got := w.ok("approvals", "list", "--json"); strings.Contains(got, `"code"`) || announced() != 0 {
		t.Errorf("approvals list printed %s and left %d announcements, want none", got, announced())
	}
	c := w.connect(choose("once"))
	c.enable("triage")
	c.tool(greet("Ada")).want("", "hello Ada")
	if len(words) > 0 {
		c.tool(echo(words[0])).want("")
		if got := c.questions(); len(got) > 0 {
			t.Errorf("a kept command asks: %q", got)
		}
	}
	// An unfinished file does not disturb anybody.
	c.answers(choose("always"))
	c.tool(echo("keep-after")).want("")
	if words, _ := w.keptWords(); !slices.Contains(words, "keep-after") {
		t.Errorf("the commands with a grant are %q, want one more", words)
	}
	c.close()
	if stdout := w.ok("audit", "verify"); !strings.HasPrefix(stdout, "ok: ") || len(r.Runs) > 0 && !strings.Contains(stdout, "was killed") {
		t.Errorf("audit verify printed %s, want ok, and what was killed", stdout)
	}
	state, err := os.ReadDir(filepath.Join(w.home, "state"))
	if err != nil {
		t.Error(err)
	}
	var left []string
	for _, f := range state {
		left = append(left, f.Name())
	}
	t.Logf("%d kills: %d lines, %d torn; %d runs began, %d left their file, %d have no end; %d grants; %d announcements were left; state has %q",
		kills, r.Entries, len(r.Problems), len(started), len(w.runs()), len(r.Runs), kept, before, left)
}

// loadAndKill starts a server, gives it work, and kills it in the middle.
func (w *world) loadAndKill(round int, s *said) {
	c := w.start(nil)
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	handshake := c.begin("initialize", object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "raw", "version": "1"}})
	c.send(object{"method": "notifications/initialized"})
	enabling := c.beginTool(enable, object{"pack_id": "triage"})
	early := round%5 == 4
	if !early && (handshake.wait() == nil || enabling.wait() == nil) {
		w.t.Errorf("a server ended by itself; it logged:\n%s", c.stderr)
		return
	}
	type call struct {
		*request
		word string
	}
	var calls []call
	for i := range 4 {
		word := fmt.Sprintf("keep-%d-%d", round, i)
		calls = append(calls, call{c.beginTool(echo(word)), word}, call{c.beginTool(greet("Ada")), ""}, call{c.beginTool(triageTool("look")), ""})
	}
	clerking := make(chan struct{})
	go func() {
		defer close(clerking)
		for ctx.Err() == nil {
			found, err := terminal.Find(ctx, filepath.Join(w.home, "run"))
			if err != nil && ctx.Err() == nil {
				w.t.Error(err)
				return
			}
			for _, server := range found.Servers {
				if server.PID == c.cmd.Process.Pid {
					clerk(ctx, w.t, server, nil)
					return
				}
			}
		}
	}()
	// The moment: after a random number of replies and of rounds of this loop.
	wait := rand.N(len(calls) + 1)
	if early {
		wait = 0
	}
	for _, call := range calls[:wait] {
		call.wait()
	}
	for range rand.N(100_000) {
		_ = time.Now()
	}
	c.killed = true
	_ = c.cmd.Process.Kill()
	cancel()
	<-clerking
	select {
	case <-c.ended:
	case <-time.After(patience):
		w.t.Error("a server that was killed is still there")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range calls {
		select {
		case m := <-call.reply:
			result, _ := m["result"].(object)
			content, _ := result["structuredContent"].(object)
			run, ok := content["run_id"].(string)
			if !ok {
				continue
			}
			s.runs = append(s.runs, run)
			if call.word != "" {
				s.keep = append(s.keep, call.word)
			}
		default:
		}
	}
}
