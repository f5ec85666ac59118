package changes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// If the clock is set during a run, no time tells whether the user changed a file:
// changes of existing files are in conflict, and new files are applied. Other tests'
// runs would notice, too, so the test sets the clock, by a nanosecond, only with
// CHANGES_TEST_CLOCK. Otherwise it ends the watch; a clock that is not watched counts
// as set.
func TestClockIsSet(t *testing.T) {
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			s, dir := openStore(t, nil), t.TempDir()
			plant(t, dir, map[string]string{"a": "before", "gone": "before", "d/b": "before", "kept": "before"})
			before := look(t, dir)
			w := begin(t, s, format, Folder{Path: dir})
			plant(t, w.at, map[string]string{"a": "run", "new": "run", "d/b": "run"})
			do(t, os.Remove(filepath.Join(w.at, "gone")))
			if w.turn.clock.WasSet() {
				t.Error("the clock was set before the test did")
			}
			if os.Getenv("CHANGES_TEST_CLOCK") != "" {
				step := unix.Timex{Modes: unix.ADJ_SETOFFSET | unix.ADJ_NANO, Time: unix.Timeval{Usec: 1}}
				_, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, &step)
				do(t, err)
			} else {
				do(t, w.turn.clock.Close())
			}
			set := w.finish(Ending{})
			got := states(set)
			for name, want := range map[string]string{"a": "replace held conflict", "gone": "remove held conflict", "d/b": "replace held conflict", "new": "create applied"} {
				if got[name] != want {
					t.Errorf("%q is %q, want %q", name, got[name], want)
				}
			}
			for _, c := range set.Changes {
				if c.State == Held && !strings.Contains(c.Reason, "the system's clock was set") {
					t.Errorf("%q is held since %q, want the clock named", c.Path, c.Reason)
				}
			}
			after := look(t, dir)
			delete(after, "new")
			same(t, "what the user had", before, after)

			// The next run is not affected, and a person may apply the held changes.
			w = begin(t, s, format, Folder{Path: dir})
			plant(t, w.at, map[string]string{"kept": "run"})
			if got := states(w.finish(Ending{}))["kept"]; got != "replace applied" {
				t.Errorf("in the next run, kept is %q, want it applied", got)
			}
			v, err := s.Show(t.Context(), set.ID)
			do(t, err)
			applied, err := s.Apply(t.Context(), set.ID, v.Token)
			do(t, err)
			if applied.Count(Applied) != 3 {
				t.Errorf("a person applied %v, want all three", states(applied))
			}
		})
	}
}
