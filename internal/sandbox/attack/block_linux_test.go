package attack_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// blockedVar says what this process was denied (see "probe block"), so that it
// stands for another machine.
const blockedVar = "ATTACK_TEST_BLOCKED"

// blockedVariants are the ways to confine on such a machine.
func blockedVariants(blocked string) []variant {
	switch blocked {
	case "landlock":
		return []variant{{name: "partial without Landlock", level: sandbox.LevelPartial, needs: "userns"}}
	case "userns":
		return []variant{{name: "partial", level: sandbox.LevelPartial, needs: "landlock"}}
	}
	return nil
}

// again runs tests of this binary where something is blocked.
func again(t *testing.T, blocked, tests string) {
	t.Helper()
	if os.Getenv(blockedVar) != "" {
		t.Skip("something is blocked already")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"block", blocked, "--", exe, "-test.run=" + tests, "-test.count=1"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(t.Context(), probe(t), args...)
	cmd.Env = append(os.Environ(), blockedVar+"="+blocked, probeVar+"="+probe(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("with %s blocked: %v\n%s", blocked, err, out)
	} else if testing.Verbose() {
		t.Logf("with %s blocked:\n%s", blocked, out)
	}
}

// The table once more, on a machine without Landlock.
func TestTableWithoutLandlock(t *testing.T) {
	t.Parallel()
	again(t, "landlock", "^TestTable$")
}

// NW-16: a machine that lacks something has the next level, and says why.
func TestBlocked(t *testing.T) {
	for _, blocked := range []string{"landlock", "userns", "landlock,userns"} {
		t.Run(blocked, func(t *testing.T) { again(t, blocked, "^TestLevelWhenBlocked$") })
	}
}

func TestLevelWhenBlocked(t *testing.T) {
	blocked := os.Getenv(blockedVar)
	if blocked == "" {
		t.Skip("nothing is blocked: TestBlocked runs this test")
	}
	report := sandbox.New(sandbox.Options{TempDir: t.TempDir()}).Probe(context.Background())
	want := sandbox.LevelPartial
	if strings.Contains(blocked, ",") {
		want = sandbox.LevelNone
	}
	if report.Level != want {
		t.Fatalf("Probe = %s (%+v), want %s", report.Level, report.Trials, want)
	}
	if report.Hint == "" {
		t.Error("the report has no hint")
	}
	var why []string
	for _, trial := range report.Trials {
		switch {
		case trial.Level > report.Level && trial.Problem == "":
			t.Errorf("%+v has no problem, and was not taken", trial)
		case trial.Level == report.Level && trial.Level != sandbox.LevelNone && trial.Problem == "":
			means := strings.Join(trial.Means, ", ")
			if has := strings.Contains(means, "Landlock"); has == strings.Contains(blocked, "landlock") {
				t.Errorf("Means = %q with %s blocked", means, blocked)
			}
			if len(trial.Gaps) == 0 {
				t.Errorf("%+v names no gap", trial)
			}
		}
		why = append(why, trial.Problem)
	}
	t.Logf("%s: %s; %q; hint %q", blocked, report.Level, why, report.Hint)
}
