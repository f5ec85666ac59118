package sandbox

import "time"

// A Report says what a probe found, for people and for doctor.
type Report struct {
	Level  Level // the best that works here
	Trials []Trial
	Hint   string // how this machine could get a better level, or empty

	// NetworkEnforced says that Level enforces a Policy's Network. If it is false, a run
	// reaches whatever the machine can.
	NetworkEnforced bool

	// Loopback says that Level can give a run a network of its own with nothing
	// but the run's processes on it.
	Loopback bool

	// Together says why no control group can bound the processes of a run together, if
	// that was asked for; empty: one can, or it was not.
	Together string

	// Overlay says why layers in memory do not work here, so that Layers are copies at
	// best; empty: they work.
	Overlay string
}

// A Trial is the result of trying one level by running a program under it.
type Trial struct {
	Level   Level
	Means   []string      // what confines, as "Landlock ABI 7"; empty when it does not work
	Gaps    []string      // what this level does not cover here though it mostly does
	Problem string        // why the level does not work; empty: it does
	Took    time.Duration // the whole run of the trial
}

// Problem returns why the best level does not work, or "" if it does.
func (r *Report) Problem() string {
	for _, t := range r.Trials {
		if t.Problem != "" {
			return t.Problem
		}
	}
	return ""
}
