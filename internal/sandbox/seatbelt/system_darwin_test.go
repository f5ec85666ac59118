package seatbelt

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	all, err := newDarwin().list()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p proc) bool { return p.pid == os.Getpid() })
	if i < 0 {
		t.Fatalf("list has %d processes, and not this one", len(all))
	}
	if p := all[i]; p.ppid != os.Getppid() || p.uid != os.Getuid() || p.start == 0 || p.zombie {
		t.Errorf("this process = %+v, want parent %d and user %d", p, os.Getppid(), os.Getuid())
	}
}

func TestMarkedAndAwaitExit(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Not a system program, whose environment is hidden.
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = []string{"A=1", "MARK=of this test"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := newDarwin()
	if d.marked(cmd.Process.Pid, []byte("MARK=of this")) {
		t.Error("marked finds a part of an entry")
	}
	d.awaitExit(cmd.Process.Pid)
	if !d.ended(cmd.Process.Pid) {
		t.Error("awaitExit returned before the process had ended")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !d.marked(os.Getpid(), []byte("HOME="+os.Getenv("HOME"))) {
		t.Error("marked does not find this process's own HOME")
	}
}

func TestRealPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "Folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := RealPath(filepath.Join(dir, "folder")) // most disks ignore letter case
	if os.IsNotExist(err) {
		got, err = RealPath(filepath.Join(dir, "Folder"))
	}
	if err != nil || filepath.Base(got) != "Folder" || !strings.HasPrefix(got, "/private/") {
		t.Errorf("RealPath = %q, %v, want …/Folder in /private", got, err)
	}
	if got, err := RealPath("/tmp"); got != "/private/tmp" {
		t.Errorf("RealPath(/tmp) = %q, %v, want /private/tmp", got, err)
	}
	if got, err := RealPath(filepath.Join(dir, "missing")); !os.IsNotExist(err) {
		t.Errorf("RealPath of nothing = %q, %v, want that it does not exist", got, err)
	}
}

// The system accepts the profile, with names of all kinds in it.
func TestSandboxExec(t *testing.T) {
	dir, err := RealPath(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, links := range []bool{true, false} {
		r := Rules{
			System: []string{"/usr", "/bin", "/System"}, Read: []string{"/Library/Apple"}, Names: []string{"/tmp/a link"},
			Write: []string{dir}, HardLinks: links, Network: links,
		}
		p, err := r.Profile()
		if err != nil {
			t.Fatal(err)
		}
		args := p.Args(SandboxExec, "/bin/sh", "-c", `: > "$1/file"`, "sh", dir)
		out, err := exec.Command(SandboxExec, args[1:]...).CombinedOutput()
		if strings.Contains(string(out), "sandbox_apply: Operation not permitted") {
			t.Skip("this test runs in a sandbox; it needs to be outside of one")
		}
		if err != nil {
			t.Errorf("sandbox-exec with HardLinks %v: %v\n%s\n%s", links, err, out, p.Text)
		}
	}
}
