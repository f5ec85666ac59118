package attack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/container"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/drill"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
	"github.com/packs-mcp/packs-mcp/test/attack"
	"github.com/packs-mcp/packs-mcp/test/engine"
)

// TestContainer tries the same rows in containers, and kills what outlives its run there.
func TestContainer(t *testing.T) {
	if os.Getenv(blockedVar) != "" {
		t.Skip("containers: something of the kernel is blocked")
	}
	if code, done := engine.Statically("TestContainer"); done {
		if code != 0 {
			t.Errorf("the tests in a static binary ended with status %d", code)
		}
		return
	}
	podman, err := engine.Start(t.Context(), t.TempDir(), "runc")
	if e, ok := errors.AsType[*engine.ErrLacks](err); ok {
		lacks(t, "podman", e.Why)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer podman.Close()
	system := container.New(container.Options{Socket: podman.Socket, Image: podman.Image})
	kept, err := changes.Open(t.Context(), changes.Options{Dir: filepath.Join(t.TempDir(), "changes")})
	if err != nil {
		t.Fatal(err)
	}
	v := variant{name: "full", level: sandbox.LevelFull, needs: "podman", runner: runner.New(runner.Options{System: system, Grace: grace, Changes: kept})}
	defer v.runner.Close()
	if report := v.runner.Probe(t.Context()); report.Level != sandbox.LevelFull || !report.Loopback {
		t.Fatalf("Probe = %+v", report)
	}
	t.Run("rows", func(t *testing.T) { containerRows(t, v, system) })
	t.Run("strays", func(t *testing.T) {
		ways := []string{"timeout", "cancel", "output"}
		for i, s := range strays {
			way := ways[i%len(ways)]
			if s.leaves {
				way = "end"
			}
			t.Run(s.how+"/"+way, func(t *testing.T) {
				v.inTime(t, func(t *testing.T) time.Duration { return v.killOnce(t, s.how, way) })
			})
		}
	})
}

// inContainers returns the rows with a different outcome than at level full: an image is a
// complete system, whose folders contain nothing of this machine's. Other differences are
// among the gaps in the container's report.
func inContainers() map[string]string {
	all := map[string]string{
		"open a program of the system to write": "EROFS|EACCES|ETXTBSY", // it is the running shell
		"list mail, logs and caches (/var)":     "ok",                   // the image's
		"list control groups":                   "ok",                   // a gap
		"list the user's keys (/proc/keys)":     "ok",                   // there are none
	}
	if os.Getuid() == 0 { // a gap
		for _, does := range []string{
			"learn how the machine's memory is used (/proc/kpageflags)", "count who uses it (/proc/kpagecount)",
			"read how the kernel uses its own (/proc/slabinfo)", "read where it is (/proc/vmallocinfo)",
		} {
			all[does] = "ok|EACCES"
		}
	}
	return all
}

// containerRows tries the rows one after the other. Rows with the same network and limits
// share a container.
func containerRows(t *testing.T, v variant, system *container.System) {
	sh, err := system.Lookup(t.Context(), "sh", "", "")
	if err != nil {
		t.Fatal(err)
	}
	type terms struct {
		network sandbox.Network
		limits  sandbox.Limits
		alone   string // the only row of a container, if it would disturb others
	}
	batches := map[terms][]attack.Row{}
	var order []terms
	for _, section := range attack.Sections() {
		for _, row := range section.Rows {
			of := terms{row.Network, row.Limits, ""}
			if row.Unsafe || row.Limits.Processes > 0 { // or be disturbed by them
				of.alone = row.Does
			}
			if row.Network == sandbox.NetworkFull {
				continue // refused as a whole: see TestRefused of package container
			}
			if batches[of] == nil {
				order = append(order, of)
			}
			batches[of] = append(batches[of], row)
		}
	}
	for _, of := range order {
		rows := batches[of]
		w := newWorld(t)
		var script strings.Builder
		for _, row := range rows {
			args := slices.Concat([]string{w.names["probe"]}, w.fill(t, row.Probe))
			for i, arg := range args {
				args[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
			}
			fmt.Fprintf(&script, "[ -e %[1]s ] || echo made >%[1]s\n", w.dir("ws/file"))
			fmt.Fprintf(&script, "%s </dev/null 2>&1; echo; echo \"end $?\"\n", strings.Join(args, " "))
		}
		before := w.state(t)
		policy := w.policy(of.network)
		policy.Limits = of.limits
		policy.Limits.Timeout, policy.Limits.CPU = 5*time.Minute, 5*time.Minute
		policy.Limits.Output = 1 << 20
		cmd, err := w.command(nil)
		if err != nil {
			t.Fatal(err)
		}
		if of.alone != "" {
			cmd.Args = w.fill(t, rows[0].Probe)
			res, err := v.runner.Run(t.Context(), policy, cmd)
			if err == nil && res.Cause == sandbox.CauseProcessLimit {
				continue // counted before the kernel refused more
			}
			if r := replyOf(res, err); !slices.Contains(v.want(rows[0]), r.Outcome) {
				t.Errorf("%s: %s %s, want %q", of.alone, r.Outcome, r.Detail, v.want(rows[0]))
			}
			continue
		}
		cmd.Program, cmd.Args, cmd.Stdin = sh, []string{"-s"}, []byte(script.String())
		res, err := v.runner.Run(context.WithoutCancel(t.Context()), policy, cmd)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Split(string(res.Stdout.Bytes()), "\nend ")
		if len(said) != len(rows)+1 {
			t.Errorf("%d rows gave %d answers, the next of which is %q; %q %s\n%s", len(rows), len(said)-1, rows[min(len(said)-1, len(rows)-1)].Does, res.Cause, res.Signal, res.Stderr.Bytes())
		}
		for i, row := range rows[:min(len(rows), len(said)-1)] {
			text := said[i]
			if i > 0 {
				_, text, _ = strings.Cut(text, "\n")
			}
			status, _, _ := strings.Cut(said[i+1], "\n")
			r := reply{Outcome: "exit " + status, Detail: text}
			for line := range strings.Lines(text) {
				_ = json.Unmarshal([]byte(line), &r)
			}
			if status == "159" {
				r.Outcome = "SIGSYS"
			}
			if slices.Contains(row.Probe, "leave") && r.Outcome == "ok" && !drill.LeftBehind(w.dir("ws/alive")) {
				r.Outcome = "ended with the run"
			}
			want := v.want(row)
			if other, ok := inContainers()[row.Does]; ok {
				want = strings.Split(other, "|")
			}
			if !slices.Contains(want, r.Outcome) {
				t.Errorf("%s %s: probe %q = %s %s, want %q", row.Case, row.Does, row.Probe, r.Outcome, r.Detail, want)
			}
		}
		if changes := cmp.Diff(before, w.state(t)); changes != "" {
			t.Errorf("the rows of network %s changed something (-before +after):\n%s", of.network, changes)
		}
	}
}
