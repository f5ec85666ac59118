package audit

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A crash between the intent and the result is visible, but is not a problem
// with the chain.
func TestRunsCutByACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	opts := testOptions(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	opts.Now = func() time.Time { at = at.Add(time.Second); return at }
	opts.MaxSize = 1000
	l := openLog(t, path, opts)
	for _, e := range []Entry{
		{Event: EventServerStart, Server: "a"},
		{Event: EventRunStart, Server: "a", Run: "r1"},
		{Event: EventRunStart, Server: "a", Run: "r2"},
		{Event: EventRunEnd, Server: "a", Run: "r1"},
		{Event: EventServerStart, Server: "b"},
		{Event: EventRunStart, Server: "b", Run: "r3"},
		{Event: EventRunEnd, Server: "b", Run: "r0"},
		{Event: EventServerStart, Server: "c"},
		{Event: EventServerStop, Server: "b"},
		{Event: EventRunStart, Server: "c", Run: "r4"},
		{Event: EventRunStart, Server: "c", Run: "r5"},
		{Event: EventRunEnd, Server: "c", Run: "r5"},
	} {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	r := verified(t, path)
	if !r.OK || len(r.Problems) > 0 || r.Entries != 12 || !r.From.Equal(at.Add(-11*time.Second)) || !r.To.Equal(at) {
		t.Errorf("Verify() = %+v, want OK", r)
	}
	var got []string
	for _, run := range r.Runs {
		got = append(got, fmt.Sprintf("%s started %v stopped %v next %v", run.Line.Entry.Run, run.Started(), !run.Stopped.IsZero(), !run.Next.IsZero()))
	}
	want := []string{
		"r2 started true stopped false next true",
		"r3 started true stopped true next true",
		"r0 started false stopped false next false",
		"r4 started true stopped false next false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the runs differ (-want +got):\n%s", diff)
	}
}

func TestRunsAreBounded(t *testing.T) {
	var r Runs
	for i := range 3 * maxLoose {
		r.Add(Line{Entry: Entry{Event: EventRunStart, Run: fmt.Sprint(i)}})
		r.Add(Line{Entry: Entry{Event: EventRunEnd, Run: fmt.Sprint(i + 1e6)}})
	}
	loose := r.Loose()
	if len(loose) > 2*maxLoose {
		t.Errorf("Loose() = %d runs, want at most %d", len(loose), 2*maxLoose)
	}
	r = Runs{}
	for i := range 2 * maxLoose {
		r.Add(Line{Entry: Entry{Event: EventRunStart, Run: fmt.Sprint(i)}})
	}
	r.Add(Line{Entry: Entry{Event: EventRunEnd, Run: fmt.Sprint(2*maxLoose - 1)}})
	for _, run := range r.Loose() {
		if !run.Started() {
			t.Errorf("run %s is said to have no start, and its start was left out", run.Line.Entry.Run)
		}
	}
}
