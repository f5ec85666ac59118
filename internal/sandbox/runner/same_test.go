package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// idOf returns the identity of the folder at path when a person approved it.
func idOf(t *testing.T, path string) os.FileInfo {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// A run uses the approved folders, not others that are at their paths later.
func TestRunReplacedFolder(t *testing.T) {
	link := func(t *testing.T, path, target string) {
		t.Helper()
		if err := os.Rename(path, path+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Skipf("symlinks: %v", err)
		}
	}
	tests := []struct {
		name   string
		change func(t *testing.T, c *sandbox.Command, other string)
		want   string // of the error; empty: it runs
	}{
		{"the same", func(t *testing.T, c *sandbox.Command, _ string) {
			c.DirID, c.WorkspaceID = idOf(t, c.Dir), idOf(t, c.Workspace)
		}, ""},
		{"not checked", func(*testing.T, *sandbox.Command, string) {}, ""},
		{"another working folder", func(t *testing.T, c *sandbox.Command, other string) { c.DirID = idOf(t, other) }, "working folder"},
		{"another workspace", func(t *testing.T, c *sandbox.Command, other string) { c.WorkspaceID = idOf(t, other) }, "workspace"},
		{"workspace becomes a link", func(t *testing.T, c *sandbox.Command, other string) {
			c.WorkspaceID, c.Dir = idOf(t, c.Workspace), other
			link(t, c.Workspace, other)
		}, "workspace"},
		{"workspace becomes a link to itself", func(t *testing.T, c *sandbox.Command, other string) {
			c.WorkspaceID, c.Dir = idOf(t, c.Workspace), other
			link(t, c.Workspace, c.Workspace+".old")
		}, "workspace"},
		{"working folder becomes a link", func(t *testing.T, c *sandbox.Command, other string) {
			c.Workspace = other
			link(t, c.Dir, other)
		}, "symbolic link"},
		{"link above the working folder", func(t *testing.T, c *sandbox.Command, other string) {
			c.Workspace = other
			parent := filepath.Dir(c.Dir)
			link(t, parent, parent+".old")
		}, "symbolic link"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			ws, other := filepath.Join(dir, "a", "ws"), filepath.Join(dir, "other")
			for _, d := range []string{ws, other} {
				if err := os.MkdirAll(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			c := behave(t, "write", "made", "x")
			c.Dir, c.Workspace = ws, ws
			tt.change(t, &c, other)
			res, err := New(Options{Skip: skipped(), TempDir: t.TempDir()}).Run(t.Context(), allow(sandbox.Limits{}, c), c)
			if tt.want == "" {
				if err != nil || res.ExitCode != 0 {
					t.Errorf("Run = %v, %v, want it to run", res, err)
				}
				return
			}
			if !errors.As(err, new(*sandbox.CommandError)) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run = %v, want a *CommandError about %q", err, tt.want)
			}
			if _, err := os.Stat(filepath.Join(other, "made")); err == nil {
				t.Error("the program was started")
			}
		})
	}
}
