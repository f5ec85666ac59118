package sandbox

import "time"

// A Report says what a probe found, for people and for doctor.
type Report struct {
	Level  Level // the best that works here
	Trials []Trial
	Hint   string // what would give this machine a better level, or empty

	// NetworkEnforced says that Level keeps a run to its Policy's Network. Where
	// it is false, a run reaches whatever the machine can.
	NetworkEnforced bool

	// Loopback says that Level can give a run a network of its own with nothing
	// but the run's processes on it.
	Loopback bool

	// Overlay says why no run can be given a folder of the user's through a layer
	// in memory, where Layers are copies at best; empty: it can.
	Overlay string
}

// A Trial is what became of trying one level by running a program under it.
type Trial struct {
	Level   Level
	Means   []string      // what confines, as "Landlock ABI 7"; empty when it does not work
	Gaps    []string      // what this level does not cover here though it mostly does
	Problem string        // why the level cannot be had; empty: it can
	Took    time.Duration // the whole run of the trial
}

// Problem returns why the best level cannot be had; empty: it can.
func (r *Report) Problem() string {
	for _, t := range r.Trials {
		if t.Problem != "" {
			return t.Problem
		}
	}
	return ""
}
