package audit

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// maxLoose bounds how many loose runs are kept, so that a forged log takes
// bounded memory.
const maxLoose = 1000

// A LooseRun is a run that lacks its start or its end.
type LooseRun struct {
	Line Line // the line that exists
	// Stopped is when the run's server shut down cleanly after the run's start
	// without recording its end; zero if it did not.
	Stopped time.Time
	// Next is when another server started, after the run's start; zero if none
	// did. Several servers may write one log, so this does not prove a crash.
	Next time.Time
}

// Started reports whether the log has the run's start but not its end: the
// server was killed, or still runs the program. Otherwise the log has only the
// end: the start's line, or the file with it, is gone.
func (r LooseRun) Started() bool { return r.Line.Entry.Event == EventRunStart }

// Runs pairs the starts of runs with their ends. The zero value is ready.
type Runs struct {
	open map[string]*LooseRun // :: run → its start
	ends []LooseRun           // ends without a start
	full bool                 // a start was dropped, so ends prove nothing any more
}

// Add takes the next line of the log.
func (r *Runs) Add(line Line) {
	e := line.Entry
	switch e.Event {
	case EventRunStart:
		if len(r.open) >= maxLoose {
			r.full = true
			return
		}
		if r.open == nil {
			r.open = make(map[string]*LooseRun)
		}
		r.open[e.Run] = &LooseRun{Line: line}
	case EventRunEnd:
		if _, ok := r.open[e.Run]; !ok && !r.full && len(r.ends) < maxLoose {
			r.ends = append(r.ends, LooseRun{Line: line})
		}
		delete(r.open, e.Run)
	case EventServerStart, EventServerStop:
		for _, run := range r.open {
			same := run.Line.Entry.Server == e.Server
			switch {
			case e.Event == EventServerStop && same && run.Stopped.IsZero():
				run.Stopped = e.Time
			case e.Event == EventServerStart && !same && run.Next.IsZero():
				run.Next = e.Time
			}
		}
	}
}

// Loose returns the runs that lack their start or their end, in the order of
// the log. It keeps the first 1,000.
func (r *Runs) Loose() []LooseRun {
	var all []LooseRun
	for run := range maps.Values(r.open) {
		all = append(all, *run)
	}
	all = append(all, r.ends...)
	slices.SortFunc(all, func(a, b LooseRun) int { return cmp.Compare(a.Line.Entry.Seq, b.Line.Entry.Seq) })
	return all
}
