package attack_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// 9.10: in a network of its own, a run cannot reach unix sockets of other programs in any
// folder that it sees. It can use its own sockets if all these folders were created for
// runs.
func TestLoopbackSockets(t *testing.T) {
	folders := map[string]func(p *sandbox.Policy, c *sandbox.Command, dir string){
		"the program's installation": func(_ *sandbox.Policy, c *sandbox.Command, dir string) {
			c.Program.Needs = append(c.Program.Needs, dir)
		},
		"the pack, without a copy": func(p *sandbox.Policy, _ *sandbox.Command, dir string) { p.ReadOnly = append(p.ReadOnly, dir) },
		"a workspace of the user's": func(p *sandbox.Policy, c *sandbox.Command, dir string) {
			p.Writable = append(p.Writable, dir)
			c.Workspace = dir
		},
		"a granted folder, beside pack and workspace": func(p *sandbox.Policy, _ *sandbox.Command, dir string) {
			p.ReadOnly = append(p.ReadOnly, dir, "/usr/share", "/usr/lib")
		},
	}
	for _, v := range confined(t) {
		if !v.runner.Probe(t.Context()).Loopback {
			continue // such a run does not start, as the table says
		}
		if landlockHasSockets() {
			t.Skip("this kernel's Landlock looks after sockets")
		}
		run := func(t *testing.T, w *world, change func(*sandbox.Policy, *sandbox.Command), args ...string) reply {
			t.Helper()
			cmd, err := w.command(args)
			if err != nil {
				t.Fatal(err)
			}
			policy := w.policy(sandbox.NetworkLoopback)
			policy.Private = []string{w.dir("pack"), w.dir("ws")}
			change(&policy, &cmd)
			return replyOf(v.runner.Run(t.Context(), policy, cmd))
		}
		for name, with := range folders {
			t.Run(v.name+"/"+name, func(t *testing.T) {
				w := newWorld(t)
				path := w.fill(t, []string{"{unix}"})[0]
				change := func(p *sandbox.Policy, c *sandbox.Command) { with(p, c, filepath.Dir(path)) }
				if r := run(t, w, change, "list", filepath.Dir(path)); r.Outcome != "ok" {
					t.Fatalf("the folder of the socket is not seen: %s %s", r.Outcome, r.Detail)
				}
				if r := run(t, w, change, "unix-connect", path); r.Outcome != "EPERM" {
					t.Errorf("connecting to a socket in it = %s %s, want EPERM", r.Outcome, r.Detail)
				}
				if heard := heard(w.listen["unix"]); heard != quiet(t, w) {
					t.Errorf("the socket heard: %s", heard)
				}
			})
		}
		t.Run(v.name+"/own", func(t *testing.T) {
			w := newWorld(t)
			if r := run(t, w, func(*sandbox.Policy, *sandbox.Command) {}, "unix-listen", w.dir("ws/own")); r.Outcome != "ok" {
				t.Errorf("listening on a socket of its own = %s %s, want ok", r.Outcome, r.Detail)
			}
		})
	}
}

// quiet returns the outcome for a socket to which nobody connected.
func quiet(t *testing.T, w *world) string {
	t.Helper()
	path := w.dir("quiet")
	fd := w.socket(t, "quiet", unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: path})
	if err := unix.Listen(fd, 8); err != nil {
		t.Fatal(err)
	}
	return heard(fd)
}

// landlockHasSockets reports whether the kernel's Landlock can restrict sockets by path.
func landlockHasSockets() bool {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && abi >= 9 && os.Getenv(blockedVar) == ""
}
