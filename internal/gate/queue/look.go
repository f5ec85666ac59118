package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// Remember adds a decision to the history.
func (q *Queue) Remember(p Past) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.past = append(q.past, p)
	q.past = q.past[max(0, len(q.past)-maxPast):]
	q.change()
}

// Outcome adds to the history how a run ended.
func (q *Queue) Outcome(run, text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.past {
		if q.past[i].Run == run {
			q.past[i].Outcome = text
			q.change()
		}
	}
}

// Pending returns the calls that wait for a person, and those whose answer waits for
// the call, oldest first.
func (q *Queue) Pending() []Pending { return q.PendingOf(func(*call.Call) bool { return true }) }

// PendingOf is [Queue.Pending] for the calls for which choose returns true.
func (q *Queue) PendingOf(choose func(*call.Call) bool) []Pending {
	defer q.lock()()
	var all []Pending
	for _, e := range q.entries {
		// A denial is kept for when the call is made again; nobody needs to see it.
		if (e.ruling == nil || e.ruling.Decision != Deny) && choose(e.Call) {
			all = append(all, e.shown)
		}
	}
	slices.SortFunc(all, func(a, b Pending) int {
		return cmp.Or(a.Asked.Compare(b.Asked), strings.Compare(a.Code, b.Code))
	})
	return all
}

// History returns the latest decisions, newest first, at most 200.
func (q *Queue) History() []Past {
	defer q.lock()()
	past := slices.Clone(q.past)
	slices.Reverse(past)
	return past
}

// Ended returns the questions that ended last, and how, newest last, at most 200.
func (q *Queue) Ended() []CodeError {
	defer q.lock()()
	return slices.Clone(q.ended)
}

// Changes returns a channel that is closed at the next change of the queue or the
// history. Take it before you read them, so that no change is missed.
func (q *Queue) Changes() <-chan struct{} {
	defer q.lock()()
	return q.changed
}

// HowRunEnded says how a run ended, in words for people. result is nil if it did not start.
func HowRunEnded(result *sandbox.Result, err error) string {
	switch {
	case err != nil || result == nil:
		return "was not started"
	case result.Cause != sandbox.CauseExit:
		return "stopped: " + string(result.Cause)
	case result.Signal != "":
		return "ended by " + result.Signal
	default:
		return fmt.Sprintf("exit code %d", result.ExitCode)
	}
}
