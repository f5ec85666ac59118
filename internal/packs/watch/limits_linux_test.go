package watch_test

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// A limit is one of the system's limits on a user's watches, and what a watcher does
// when it reaches it.
type limit struct {
	name, sysctl, value string
	later               bool // it is reached when packs are added, and not at the start
	before, after       int  // packs at the start, and packs added later
}

var limits = []limit{
	{"no watches left", "max_inotify_watches", "20", false, 50, 1},
	{"none left later", "max_inotify_watches", "20", true, 5, 50},
	{"no watcher at all", "max_inotify_instances", "0", false, 5, 1},
}

// noLimit is the exit status of a test in its own namespace that cannot set a limit.
const noLimit = 77

// If the system's watches run out, polling takes over, with one line in the log. The
// test lowers the system's limits in its own user namespace.
func TestSystemLimits(t *testing.T) {
	for _, l := range limits {
		t.Run(strings.ReplaceAll(l.name, " ", "_"), func(t *testing.T) {
			if os.Getenv("PACKS_MCP_TEST_LIMIT") == l.name {
				underLimit(t, l)
				return
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=1m")
			cmd.Env = append(os.Environ(), "PACKS_MCP_TEST_LIMIT="+l.name)
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
			}
			out, err := cmd.CombinedOutput()
			exit, ran := errors.AsType[*exec.ExitError](err)
			switch {
			case err != nil && !ran, ran && exit.ExitCode() == noLimit:
				if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "userns") {
					t.Fatalf("userns: required by PACKS_MCP_REQUIRE, but no limit can be set in one: %v\n%s", err, out)
				}
				t.Skipf("userns: no limit can be set in one: %v", err)
			case err != nil:
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func underLimit(t *testing.T, l limit) {
	if err := os.WriteFile("/proc/sys/user/"+l.sysctl, []byte(l.value), 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(noLimit)
	}
	p := newPlace(t)
	for i := range l.before {
		p.pack(fmt.Sprintf("root/p%02d", i), "old")
	}
	var log logbuf.Buffer
	store := attach.Open(p.path("attached.json"))
	lib, err := packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{{Dir: p.path("root")}}}, store)
	p.must(err)
	opts := kinds()["events"]
	opts.Every, opts.Logger = 20*time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
	f := followLibrary(t, lib, opts)
	if l.later {
		f.waitIdle()
	}
	for i := range l.after {
		p.pack(fmt.Sprintf("root/q%02d", i), "new")
	}
	last := fmt.Sprintf("q%02d: new", l.after-1)
	f.until("the packs that came later", func() bool { return slices.Contains(show(lib.Catalog(t.Context())), last) })
	p.pack("root/q00", "newer")
	f.until("an edit of one", func() bool { return slices.Contains(show(lib.Catalog(t.Context())), "q00: newer") })
	before := f.changes()
	p.must(store.Update(func(s *attach.Set) error { s.Attach("q00", attach.Entry{Dir: p.path("root/q00")}); return nil }))
	f.until("what is attached", func() bool { return f.changes() > before })
	f.watcher.Close()
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "scanned at intervals") {
		t.Errorf("the log says %s, want one line", cmp.Or(said, "nothing"))
	}
}
