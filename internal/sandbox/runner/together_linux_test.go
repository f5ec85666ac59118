//go:build amd64 || arm64

package runner

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// Processes that have little memory each, and too much together, are ended, and so is a
// program that starts others without end.
func TestTogether(t *testing.T) {
	together := sandbox.Together{Memory: 256 << 20, Processors: 2}
	limits := sandbox.Limits{Timeout: 2 * time.Minute, CPU: 2 * time.Minute, Memory: 2 << 30, Processes: 1024}
	for _, level := range []sandbox.Level{sandbox.LevelFull, sandbox.LevelPartial} {
		var skip []sandbox.Level
		if level == sandbox.LevelPartial {
			skip = []sandbox.Level{sandbox.LevelFull}
		}
		r := New(Options{Skip: append(skip, skipped()...), TempDir: t.TempDir(), Together: together, Grace: time.Second})
		t.Cleanup(r.Close)
		report := r.Probe(t.Context())
		if report.Level != level {
			continue
		}
		if report.Together != "" {
			if os.Getuid() == 0 && slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "groups") {
				t.Fatalf("level %s: %s, though groups are required", level, report.Together)
			}
			t.Skipf("groups: %s", report.Together)
		}
		for _, c := range []struct {
			name  string
			argv  []string
			cause sandbox.Cause
		}{
			{"a hog of many processes", []string{"hog", "16", "64"}, sandbox.CauseMemoryLimit},
			{"a bomb", []string{"bomb"}, sandbox.CauseMemoryLimit},
			{"a program that has enough", []string{"exit", "3"}, sandbox.CauseExit},
		} {
			t.Run(level.String()+"/"+c.name, func(t *testing.T) {
				cmd := behave(t, c.argv[0], c.argv[1:]...)
				policy := allow(limits, cmd)
				policy.Together = together
				res, err := r.Run(t.Context(), policy, cmd)
				if err != nil {
					t.Fatal(err)
				}
				if res.Cause != c.cause {
					t.Errorf("Cause = %q (%d %s, stderr %.300q), want %q", res.Cause, res.ExitCode, res.Signal, res.Stderr.Bytes(), c.cause)
				}
			})
		}
	}
}

// Where no group can be had, the report says why, and runs go on without.
func TestTogetherWithoutGroups(t *testing.T) {
	r := New(Options{Skip: []sandbox.Level{sandbox.LevelFull, sandbox.LevelPartial}, TempDir: t.TempDir(), Together: sandbox.Together{Memory: 1 << 30}})
	defer r.Close()
	if report := r.Probe(t.Context()); report.Together == "" {
		t.Errorf("Probe = %+v, want a reason", report)
	}
	c := behave(t, "exit", "3")
	policy := allow(sandbox.Limits{}, c)
	policy.Together.Memory = 1 << 30
	if res, err := r.Run(t.Context(), policy, c); err != nil || res.ExitCode != 3 {
		t.Errorf("Run = %+v, %v", res, err)
	}
}
