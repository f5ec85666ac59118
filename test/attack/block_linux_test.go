package attack_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// blockedVar names what this process was denied (see "probe block") to simulate another
// machine.
const blockedVar = "ATTACK_TEST_BLOCKED"

// withoutLandlock is the confinement on a machine without Landlock.
var withoutLandlock = variant{name: "partial without Landlock", level: sandbox.LevelPartial, needs: "userns"}

// notAsRoot skips the test for root, whom nothing confines without Landlock.
func notAsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("without Landlock, nothing keeps root's programs from what only root may read")
	}
}

var (
	endLine = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)
	// progressLine matches output that says nothing about failures.
	progressLine = regexp.MustCompile(`(?m)^\s*(=== |--- PASS).*\n`)
)

// again runs a test of this binary with something blocked. It passes only if a subtest whose
// name ends with part really ran and passed.
func again(t *testing.T, blocked, test, part string) {
	t.Helper()
	if os.Getenv(blockedVar) != "" {
		t.Skip("something is blocked already")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), probe(t), "block", blocked, "--", exe, "-test.run=^"+test+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), blockedVar+"="+blocked, probeVar+"="+probe(t))
	out, err := cmd.CombinedOutput()
	ended := map[string]int{}
	for _, m := range endLine.FindAllStringSubmatch(string(out), -1) {
		if strings.HasPrefix(m[2], test) && strings.HasSuffix(m[2], part) {
			ended[m[1]]++
		}
	}
	switch {
	case err != nil:
		t.Errorf("%s with %s blocked: %v\n%s", test, blocked, err, progressLine.ReplaceAll(out, nil))
	case ended["PASS"] > 0:
		t.Logf("%s with %s blocked: %v", test, blocked, ended)
	case ended["SKIP"] > 0 || strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s with %s blocked:\n%s", test, blocked, out)
	default:
		t.Errorf("%s with %s blocked ran nothing that ends in %q:\n%s", test, blocked, part, out)
	}
}

// The table again, on a machine without Landlock.
func TestTableWithoutLandlock(t *testing.T) {
	t.Parallel()
	notAsRoot(t)
	again(t, "landlock", "TestTable", "/partial_without_Landlock")
}

// The table again if nobody can answer the filter's questions, because another filter of
// this process already has a listener.
func TestTableWithoutListener(t *testing.T) {
	t.Parallel()
	again(t, "listener", "TestTable", "/full")
}

// 9.8: there, the levels are the same, and report what they do not limit. If namespaces or
// Landlock are missing as well, the next level is used.
func TestWithoutListener(t *testing.T) {
	for _, blocked := range []string{"listener", "listener,userns", "listener,landlock"} {
		t.Run(blocked, func(t *testing.T) {
			if strings.Contains(blocked, "landlock") {
				notAsRoot(t)
			}
			again(t, blocked, "TestLevelWithoutListener", "")
		})
	}
}

func TestLevelWithoutListener(t *testing.T) {
	blocked := os.Getenv(blockedVar)
	if !strings.HasPrefix(blocked, "listener") {
		t.Skip("the filter can ask somebody: TestWithoutListener runs this test")
	}
	report := runner.New(runner.Options{TempDir: t.TempDir()}).Probe(context.Background())
	want := sandbox.LevelPartial
	if blocked == "listener" {
		want = sandbox.LevelFull
	}
	if report.Level != want {
		t.Fatalf("Probe = %s (%+v), want %s", report.Level, report.Trials, want)
	}
	gaps := strings.Join(report.Trials[len(report.Trials)-1].Gaps, "\n")
	for _, part := range []string{"can ask nobody (device or resource busy)", "each mapping", "8 MiB", "not that of all together"} {
		if !strings.Contains(gaps, part) {
			t.Errorf("Gaps = %q, want them to say %q", gaps, part)
		}
	}
}

// NW-16: a machine that lacks a feature uses the next level, and says why.
func TestBlocked(t *testing.T) {
	for _, blocked := range []string{"landlock", "userns", "landlock,userns"} {
		t.Run(blocked, func(t *testing.T) { again(t, blocked, "TestLevelWhenBlocked", "") })
	}
}

func TestLevelWhenBlocked(t *testing.T) {
	blocked := os.Getenv(blockedVar)
	if blocked == "" {
		t.Skip("nothing is blocked: TestBlocked runs this test")
	}
	report := runner.New(runner.Options{TempDir: t.TempDir()}).Probe(context.Background())
	want := sandbox.LevelPartial
	if strings.Contains(blocked, ",") || blocked == "landlock" && os.Getuid() == 0 {
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
