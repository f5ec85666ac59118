//go:build unix && !darwin

package launch

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// manager makes a stand-in for systemctl from a script, and returns its path.
func manager(t *testing.T, script string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "systemctl")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// runtimeDir returns a folder like the one a login makes. Its path is short, since the
// path of a socket has at most 107 bytes.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func socket(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

func TestWithSession(t *testing.T) {
	dir := runtimeDir(t)
	systemctl := manager(t, `test "$*" = "--user show-environment" || exit 1
test "$XDG_RUNTIME_DIR" = "`+dir+`" || exit 1
cat <<'EOF'
DISPLAY=:7
HOME=/elsewhere
LD_PRELOAD=/tmp/x.so
WAYLAND_DISPLAY=$'wayland\n0'
XAUTHORITY=`+dir+`/xauth
XDG_CURRENT_DESKTOP=GNOME
EOF
`)
	socket(t, filepath.Join(dir, "bus"))
	few := []string{"HOME=/home/ann", "XDG_RUNTIME_DIR=" + dir}
	want := append(slices.Clone(few), "DBUS_SESSION_BUS_ADDRESS=unix:path="+dir+"/bus", "DISPLAY=:7", "XAUTHORITY="+dir+"/xauth", "XDG_CURRENT_DESKTOP=GNOME")
	got := withSessionOf(systemctl, few)
	slices.Sort(got[2:])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("withSession(%q) differs (-want +got):\n%s", few, diff)
	}

	for _, environ := range [][]string{
		append(few, "DISPLAY=:1"), append(few, "WAYLAND_DISPLAY=wayland-1"),
		append(few, "SSH_CONNECTION=192.0.2.1 1 192.0.2.2 22"), append(few, "SSH_TTY=/dev/pts/1"),
	} {
		environ = slices.Clone(environ)
		if diff := cmp.Diff(environ, withSessionOf(systemctl, environ)); diff != "" {
			t.Errorf("withSession(%q) differs (-want +got):\n%s", environ, diff)
		}
	}
}

// Without a service manager that answers, the user's sockets show where the display is.
func TestWithSessionSockets(t *testing.T) {
	for _, script := range []string{"exit 1", "echo DISPLAY=", "echo 'no variables'", "head -c 100000 /dev/zero"} {
		systemctl := manager(t, script)
		dir := runtimeDir(t)
		socket(t, filepath.Join(dir, "wayland-1"))
		for _, name := range []string{"wayland-0", "wayland-1.lock"} { // no sockets
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := valueOf(withSessionOf(systemctl, []string{"XDG_RUNTIME_DIR=" + dir}), "WAYLAND_DISPLAY"); got != "wayland-1" {
			t.Errorf("withSession with the manager %q: WAYLAND_DISPLAY=%q, want wayland-1", script, got)
		}
	}
}

// A folder in which others can create sockets is ignored.
func TestWithSessionExposed(t *testing.T) {
	systemctl := manager(t, "echo WAYLAND_DISPLAY=wayland-0")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(runtimeDir(t), link); err != nil {
		t.Fatal(err)
	}
	open := runtimeDir(t)
	if err := os.Chmod(open, 0o770); err != nil {
		t.Fatal(err)
	}
	socket(t, filepath.Join(open, "wayland-0"))
	for _, dir := range []string{link, open, filepath.Join(open, "none")} {
		if got := valueOf(withSessionOf(systemctl, []string{"XDG_RUNTIME_DIR=" + dir}), "WAYLAND_DISPLAY"); got != "" {
			t.Errorf("withSession with the folder %q: WAYLAND_DISPLAY=%q, want none", dir, got)
		}
	}
	if os.Geteuid() == 0 {
		theirs := runtimeDir(t)
		if err := os.Chown(theirs, 1, -1); err != nil {
			t.Fatal(err)
		}
		if got := valueOf(withSessionOf(systemctl, []string{"XDG_RUNTIME_DIR=" + theirs}), "WAYLAND_DISPLAY"); got != "" {
			t.Errorf("withSession with another user's folder: WAYLAND_DISPLAY=%q, want none", got)
		}
	}
}

// A folder on PATH may be a project's, so no program from it starts.
func TestWithSessionPath(t *testing.T) {
	dir, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	for _, name := range []string{"systemctl", "xdg-open", "notify-send", "busctl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+name+" >>'"+ran+"'\necho DISPLAY=:66\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	environ := []string{"PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + runtimeDir(t)}
	if got := valueOf(withSession(environ), "DISPLAY"); got == ":66" {
		t.Errorf("withSession: DISPLAY=%q, from a program on PATH", got)
	}
	for _, goos := range []string{"linux", "freebsd"} {
		all, err := plan(append(environ, "DISPLAY=:0"), goos, "/run/u/open.html", isFile)
		if err == nil && !filepath.IsAbs(all[0][0]) {
			t.Errorf("plan on %s = %q, which PATH decides", goos, all)
		}
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("programs on PATH were started: %s", text)
	}
}
