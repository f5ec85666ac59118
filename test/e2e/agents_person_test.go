package e2e_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"
)

// A person at a terminal answers waiting calls.
type person struct {
	leave    func()       // ends, after finishing the current answer
	answered atomic.Int64 // how many calls
}

// answerAll starts a person who answers every call of w's servers once, with "packs-mcp
// approvals approve" or deny, until the test ends.
func (w *world) answerAll(verb string) *person {
	p := new(person)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	p.leave = func() { cancel(); <-done }
	w.t.Cleanup(p.leave)
	go func() {
		defer close(done)
		again := time.NewTicker(200 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				p.answered.Add(int64(w.answer(verb)))
			}
		}
	}()
	return p
}

// answer answers the waiting calls, and returns how many there were.
func (w *world) answer(verb string) int {
	out, err := w.command("approvals", "list", "--json").Output()
	if err != nil {
		return 0 // no server is running
	}
	var list struct {
		Pending []struct{ Code, Title, Answered string }
	}
	if err := json.Unmarshal(out, &list); err != nil {
		w.t.Errorf("approvals list --json printed %q: %v", out, err)
		return 0
	}
	n := 0
	for _, c := range list.Pending {
		if c.Answered != "" {
			continue
		}
		args := []string{"approvals", verb, c.Code}
		if verb == "approve" {
			args = append(args, "--yes")
		}
		if out, err := w.command(args...).CombinedOutput(); err != nil {
			w.t.Errorf("approvals %s %s (%s): %v\n%s", verb, c.Code, c.Title, err, out)
			continue
		}
		n++
	}
	return n
}

// some reports whether the person has answered a call.
func (p *person) some() bool { return p.answered.Load() > 0 }

// count makes the person leave, and returns how many calls were answered. A call can return
// before the command that answered it.
func (p *person) count() int {
	p.leave()
	return int(p.answered.Load())
}
