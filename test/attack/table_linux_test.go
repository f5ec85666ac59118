package attack_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/drill"
	"github.com/packs-mcp/packs-mcp/test/attack"
)

// want returns the possible outcomes of a row in a variant.
func (v variant) want(row attack.Row) []string {
	w := map[string]string{
		"full": row.Want.Full, "partial": row.Want.Landlock, "partial without Landlock": row.Want.Namespaces, "none": row.Want.None,
	}[v.name]
	if os.Getuid() == 0 && row.Root != "" && v.name == "partial" {
		w = row.Root
	}
	if (os.Getenv(blockedVar) == "listener" || v.ownKernel) && row.NoListener != "" && v.level != sandbox.LevelNone {
		w = row.NoListener
	}
	return strings.Split(w, "|")
}

// try runs one row in a world of its own. changes describes what changed in the user's
// files and processes.
func (v variant) try(t *testing.T, row attack.Row) (r reply, changes string) {
	t.Helper()
	w := newWorld(t)
	cmd, err := w.command(w.fill(t, row.Probe))
	if err != nil {
		t.Fatal(err)
	}
	before := w.state(t)
	policy := w.policy(row.Network)
	policy.Limits = row.Limits
	res, err := v.runner.Run(t.Context(), policy, cmd)
	if err == nil && res.Level != v.level {
		t.Fatalf("Level = %s, want %s", res.Level, v.level)
	}
	r = replyOf(res, err)
	if slices.Contains(row.Probe, "leave") && r.Outcome == "ok" && !drill.LeftBehind(w.dir("ws/alive")) {
		r.Outcome = "ended with the run"
	}
	changes = cmp.Diff(before, w.state(t))
	// A killed process takes a moment to disappear.
	for until := time.Now().Add(patience); r.Outcome == "ok" && row.Changes && changes == "" && v.level == sandbox.LevelNone && time.Now().Before(until); {
		<-time.After(time.Millisecond)
		changes = cmp.Diff(before, w.state(t))
	}
	return r, changes
}

// The table: each operation at each level, and unconfined, to show that it would work. An
// operation that does not work even unconfined, because this machine lacks something or the
// tests' user lacks the permission, must still be refused, and is named.
func TestTable(t *testing.T) {
	variants := confined(t)
	for _, section := range attack.Sections() {
		t.Run(section.Title, func(t *testing.T) {
			for _, row := range section.Rows {
				t.Run(row.Case+" "+row.Does, func(t *testing.T) {
					t.Parallel()
					works := control(t, row)
					for _, v := range variants {
						t.Run(v.name, func(t *testing.T) { checkRow(t, v, row, works) })
					}
				})
			}
		})
	}
}

// control tries a row unconfined, and reports whether it succeeds.
func control(t *testing.T, row attack.Row) (works bool) {
	t.Helper()
	if blocked := os.Getenv(blockedVar); row.Unsafe || blocked != "" && blocked != "listener" { // if something else is blocked, nothing is really unconfined
		return true
	}
	t.Run("none", func(t *testing.T) {
		v := unconfined(t)
		r, changes := v.try(t, row)
		works = slices.Contains(v.want(row), r.Outcome)
		switch {
		case !works:
			t.Skipf("it does not work unconfined on this machine: %s %s", r.Outcome, r.Detail)
		case row.Changes && changes == "":
			t.Errorf("outcome %s, and nothing changed: the test looks in the wrong place", r.Outcome)
		case !row.Changes && changes != "":
			t.Errorf("outcome %s, and what changed is not expected (-before +after):\n%s", r.Outcome, changes)
		}
	})
	return works
}

func checkRow(t *testing.T, v variant, row attack.Row, works bool) {
	t.Helper()
	r, changes := v.try(t, row)
	want := v.want(row)
	if !slices.Contains(want, r.Outcome) {
		if !works && r.Outcome != "ok" {
			t.Skipf("outcome %s %s, as unconfined; want %q where the machine has it", r.Outcome, r.Detail, want)
		}
		t.Errorf("probe %q = %s %s, want %q", row.Probe, r.Outcome, r.Detail, want)
	}
	// Only an operation that is allowed may change something. A run's own servers and
	// clients are inside its network.
	may := row.Changes && slices.Equal(want, []string{"ok"}) && row.Network != sandbox.NetworkLoopback
	if changes != "" && !may {
		t.Errorf("probe %q = %s, and it changed something (-before +after):\n%s", row.Probe, r.Outcome, changes)
	}
}

// Each row has a unique name, and an outcome for every level.
func TestTableIsComplete(t *testing.T) {
	cases := map[string]bool{}
	for _, section := range attack.Sections() {
		seen := map[string]bool{}
		for _, row := range section.Rows {
			cases[row.Case] = true
			if seen[row.Does] {
				t.Errorf("%s: %q occurs twice", section.Title, row.Does)
			}
			seen[row.Does] = true
			if row.Want.Full == "" || row.Want.Landlock == "" || row.Want.Namespaces == "" || row.Want.None == "" != row.Unsafe {
				t.Errorf("%s: %q does not say what it wants: %+v", section.Title, row.Does, row.Want)
			}
		}
	}
	for _, id := range []string{
		"NW-01", "NW-02", "NW-03", "NW-04", "NW-05", "NW-06", "NW-07", "NW-08", "NW-09", "NW-10", "NW-11", "NW-12", "NW-13", "NW-14", "NW-15", "NW-16",
		"PK-09", "PK-15", "PK-17", "PK-18", "FS-01", "FS-04", "FS-05", "FS-06", "EN-03",
	} {
		if !cases[id] {
			t.Errorf("no row is of case %s", id)
		}
	}
}
