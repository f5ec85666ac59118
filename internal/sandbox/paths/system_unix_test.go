//go:build unix

package paths

import (
	"path/filepath"
	"runtime"
	"testing"
)

func TestSystemDirs(t *testing.T) {
	dirs := SystemDirs()
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/bin/sh", "/usr", sh} {
		if !Inside(dirs, path) {
			t.Errorf("SystemDirs() = %q, without %q", dirs, path)
		}
	}
	for _, path := range []string{"/", "/home", "/root", "/Users", "/tmp", "/var", "/run", "/proc", "/private"} {
		if Inside(dirs, path) {
			t.Errorf("SystemDirs() = %q, with %q", dirs, path)
		}
	}
	if runtime.GOOS == "linux" && !Inside(dirs, "/etc") {
		t.Errorf("SystemDirs() = %q, without /etc", dirs)
	}
}
