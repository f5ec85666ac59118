package attack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	inContainer(t, variant{name: "full", level: sandbox.LevelFull, needs: "podman"}, "runc", inContainers())
}

// runscVar names a runsc, gVisor's runtime, by its path, and after that flags of its own:
// "/usr/local/bin/runsc platform=systrap".
const runscVar = "PACKS_TEST_RUNSC"

// TestRunsc does the same in containers with a kernel of their own.
func TestRunsc(t *testing.T) {
	runsc := strings.Fields(os.Getenv(runscVar))
	if len(runsc) == 0 {
		lacks(t, "runsc", "no runsc is named by "+runscVar)
	}
	if code, done := engine.Statically("TestRunsc"); done {
		if code != 0 {
			t.Errorf("the tests in a static binary ended with status %d", code)
		}
		return
	}
	flags := []string{"--runtime-flag", "host-uds=open", "--runtime-flag", "network=none"}
	for _, flag := range runsc[1:] {
		flags = append(flags, "--runtime-flag", flag)
	}
	v := withoutLandlock
	v.ownKernel = true
	inContainer(t, v, runsc[0], inGVisor(), flags...)
}

// inContainer tries the rows in containers, and kills what strays there. v has no runner yet; other are
// the outcomes of rows that differ from its: :: what a row does → outcomes.
func inContainer(t *testing.T, v variant, runtime string, other map[string]string, flags ...string) {
	podman, err := engine.Start(t.Context(), t.TempDir(), runtime, flags...)
	if e, ok := errors.AsType[*engine.ErrLacks](err); ok {
		lacks(t, "podman", e.Why)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer podman.Close()
	system := container.New(container.Options{Socket: podman.Socket, Image: podman.Image, Runtime: filepath.Base(runtime)})
	kept, err := changes.Open(t.Context(), changes.Options{Dir: filepath.Join(t.TempDir(), "changes")})
	if err != nil {
		t.Fatal(err)
	}
	v.runner = runner.New(runner.Options{System: system, Grace: grace, Changes: kept})
	defer v.runner.Close()
	if report := v.runner.Probe(t.Context()); report.Level != v.level || !report.Loopback {
		t.Fatalf("Probe = %+v", report)
	}
	t.Run("rows", func(t *testing.T) { containerRows(t, v, system, other) })
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

// inGVisor are the rows with another outcome in gVisor, whose kernel is one for the container
// alone and does not have everything that Linux has.
func inGVisor() map[string]string {
	all := inContainers()
	maps.Copy(all, map[string]string{
		"have more processes than the limit":                                        "EAGAIN|ENOMEM",
		"have more memory than the limit":                                           "ok", // the same
		"open the key by its number in the file system":                             "ENOTSUP",
		"watch the key for changes":                                                 "EMFILE", // before it is looked for
		"exchange the pack and the workspace":                                       "EINVAL|EBUSY",
		"open a setting of the kernel to write":                                     "ENOENT",
		"open the keyboard's way into the kernel":                                   "ok|EACCES", // nothing is behind it
		"slow it down (scheduler)":                                                  "EINVAL|ESRCH",
		"open a message queue that somebody made":                                   "EMFILE",
		"make an i386 system call":                                                  "ENOSYS",
		"have it from /dev/zero":                                                    "ok", // the memory of the container is what is bounded
		"give the space of a part of a file back (fallocate, FALLOC_FL_PUNCH_HOLE)": "ENOTSUP",
		"share memory with them again and again, less than the limit at a time":     "ok|ENOMEM",
		"change a network interface":                                                "ENOTTY",
		"list the user's keys (/proc/keys)":                                         "ENOENT",
		"learn how the machine's memory is used (/proc/kpageflags)":                 "ENOENT",
		"count who uses it (/proc/kpagecount)":                                      "ENOENT",
		"read how the kernel uses its own (/proc/slabinfo)":                         "ENOENT",
		"read where it is (/proc/vmallocinfo)":                                      "ENOENT",
	})
	return all
}

// wantIn returns the outcomes of a row in a container where some differ.
func (v variant) wantIn(differ map[string]string, row attack.Row) []string {
	if other, ok := differ[row.Does]; ok {
		return strings.Split(other, "|")
	}
	return v.want(row)
}

// containerRows tries the rows one after the other. Rows with the same network and limits
// share a container.
func containerRows(t *testing.T, v variant, system *container.System, differ map[string]string) {
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
			if r := replyOf(res, err); !slices.Contains(v.wantIn(differ, rows[0]), r.Outcome) {
				t.Errorf("%s: %s %s, want %q", of.alone, r.Outcome, r.Detail, v.wantIn(differ, rows[0]))
			}
			continue
		}
		cmd.Program, cmd.Args, cmd.Stdin = sh, []string{"-s"}, []byte(script.String())
		res, err := v.runner.Run(context.WithoutCancel(t.Context()), policy, cmd)
		if v.ownKernel && of.network == sandbox.NetworkHosts { // nor can the listener come out
			if !errors.As(err, new(*sandbox.ConfineError)) {
				t.Errorf("with hosts, Run = %+v, %v, want a *ConfineError", res, err)
			}
			continue
		}
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
			want := v.wantIn(differ, row)
			if !slices.Contains(want, r.Outcome) {
				t.Errorf("%s %s: probe %q = %s %s, want %q", row.Case, row.Does, row.Probe, r.Outcome, r.Detail, want)
			}
		}
		if changes := cmp.Diff(before, w.state(t)); changes != "" {
			t.Errorf("the rows of network %s changed something (-before +after):\n%s", of.network, changes)
		}
	}
}
