package attack_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/drill"
)

// doctorAttack runs "packs-mcp doctor --attack" with further arguments, in an empty home, on
// a machine without the features that blocked names. It fails if the temporary folder is not
// empty afterwards.
func doctorAttack(t *testing.T, blocked string, args ...string) (stdout string, status int) {
	t.Helper()
	w := newWorld(t)
	argv := append([]string{packsMCP(t), "doctor", "--attack"}, args...)
	if blocked != "" {
		argv = append([]string{probe(t), "block", blocked, "--"}, argv...)
	}
	tmp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = []string{"HOME=" + w.dir("home"), "PATH=/usr/bin:/bin", "PACKS_MCP_HOME=" + w.dir("state"), "TMPDIR=" + tmp}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // ProcessState has the status
	if errs.Len() > 0 {
		t.Errorf("it prints on standard error: %s", &errs)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// The program itself shows, on any machine, what its sandbox refuses at each level.
func TestDoctorAttack(t *testing.T) {
	t.Parallel()
	out, status := doctorAttack(t, "", "--json")
	var got struct {
		OK     bool
		Levels []struct {
			Level string
			Bad   int
			Tries []struct{ Tried, Expected, Happened string }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || !got.OK {
		t.Fatalf("status %d, %v, want 0 and ok:\n%s", status, err, out)
	}
	levels := map[string]bool{}
	for _, l := range got.Levels {
		levels[l.Level] = true
		if l.Bad > 0 {
			t.Errorf("at level %s, %d tries are bad:\n%s", l.Level, l.Bad, out)
		}
		if want := len(drill.Rows()); len(l.Tries) != want {
			t.Errorf("at level %s, %d tries, want %d", l.Level, len(l.Tries), want)
		}
		for _, try := range l.Tries {
			switch {
			case l.Level == "none" && try.Expected == "refused" && try.Happened != "not there",
				try.Expected == "refused" && try.Happened == "ok",
				try.Expected == "works" && try.Happened != "ok":
				t.Errorf("at level %s, %q is %q, expected %q", l.Level, try.Tried, try.Happened, try.Expected)
			}
		}
	}
	for _, v := range confined(t) {
		if !levels[v.level.String()] {
			t.Errorf("nothing was tried at level %s, which this machine has", v.level)
		}
	}
	if !levels[sandbox.LevelNone.String()] {
		t.Error("nothing was tried unconfined")
	}
}

// If nothing confines, it says so, shows what a program can do, and fails.
func TestDoctorAttackUnconfined(t *testing.T) {
	t.Parallel()
	out, status := doctorAttack(t, "userns,landlock")
	if status != 1 {
		t.Errorf("status %d, want 1", status)
	}
	for _, want := range []string{
		"\n  partial  not available here: ", "\n  full     not available here: ", "\nlevel     none: nothing confines it",
		"\n  open      done                         read a key in the home folder\n",
		"\n  refused   refused: not there           find a key of the server's",
		"\nNo level confines programs here.",
	} {
		if !strings.Contains(strings.ReplaceAll(out, "\n            ", "\n  "), want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
}
