//go:build amd64 || arm64

package confine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A working folder is found by its own path, and by no symbolic link, with openat2(2) and without.
func TestOpenFolder(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(base, name) }
	if err := errors.Join(
		os.MkdirAll(at("real/below"), 0o700), os.WriteFile(at("real/file"), nil, 0o600),
		os.Symlink("real", at("link")), os.Symlink("below", at("real/last")), os.Symlink("/proc/self/root", at("magic")),
	); err != nil {
		t.Fatal(err)
	}
	for _, openat2 := range []bool{true, false} {
		if openat2 && !hasOpenat2() {
			continue
		}
		for dir, want := range map[string]bool{
			"/": true, at("real"): true, at("real/below"): true, at("real") + "//below/": true,
			at("link"): false, at("link/below"): false, at("real/last"): false, at("magic"): false, at("magic") + at("real"): false,
			"/proc/self/cwd": false, "/proc/self/root" + at("real"): false, at("real/file"): false, at("real/none"): false,
		} {
			p := &plan{}
			p.openFolder(dir, openat2)
			failed, errno := p.run()
			if found := failed < 0; found != want {
				t.Errorf("openat2 %v: opening %q gives %v, want it found: %v", openat2, dir, unix.Errno(errno), want)
			}
			if failed >= 0 {
				continue
			}
			var have, is unix.Stat_t
			if err := errors.Join(unix.Fstat(int(p.slot[slotFrom]), &have), unix.Lstat(dir, &is)); err != nil || have.Ino != is.Ino || have.Dev != is.Dev {
				t.Errorf("openat2 %v: opening %q gives another folder (%v)", openat2, dir, err)
			}
		}
	}
}

// Only a process that can never have a capability may do without secure bits, and nothing that
// begins in a user namespace of its own, where it has them all.
func TestSecureBitsAreNeeded(t *testing.T) {
	for _, own := range []bool{true, false} {
		p := &plan{}
		p.unprivileged(own)
		for i, what := range p.what {
			if (what == "lock the secure bits" || what == "clear the ambient capabilities") && !(bare() && !own) {
				for _, errno := range p.steps[i].ignore {
					if errno == uintptr(unix.EINVAL) {
						t.Errorf("own %v: the step %q may fail with EINVAL", own, what)
					}
				}
			}
		}
	}
	if n, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); n == 0 && bare() {
		t.Error("a process without no_new_privs counts as one that can never have a capability")
	}
}
