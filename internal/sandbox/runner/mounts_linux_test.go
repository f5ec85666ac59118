//go:build amd64 || arm64

package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A new mount in a project is noticed although the list of mounts is cached: when the
// next layer is planned, and when a run begins whose layer was planned before.
func TestMountInProject(t *testing.T) {
	r := New(Options{TempDir: t.TempDir(), Changes: keptChanges(t)})
	t.Cleanup(r.Close)
	if report := r.Probe(t.Context()); report.Level != sandbox.LevelFull || report.Overlay != "" {
		t.Skipf("no overlay here: %v, %s", report.Level, report.Overlay)
	}
	dir := plantTree(t, map[string]string{"sub/file": "x"})
	sub := filepath.Join(dir, "sub")
	plan := func() sandbox.Layer { return r.Layers(t.Context(), []string{dir})[0] }
	before := plan()
	if before.Kind != sandbox.LayerOverlay {
		t.Fatalf("the layer is %v: %s", before.Kind, before.Reason)
	}
	if err := unix.Mount("tmpfs", sub, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("this user cannot mount: %v", err)
	}
	mounted := true
	unmount := func() {
		if mounted {
			mounted = false
			if err := unix.Unmount(sub, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(unmount)
	p, c := inProject(t, dir, "true")
	p.Layers = []sandbox.Layer{before}
	if _, err := r.Run(t.Context(), p, c); !isFolderError(err) || !strings.Contains(err.Error(), "something is mounted in it") {
		t.Errorf("Run with the plan from before = %v, want that something is mounted in it", err)
	}
	if l := plan(); l.Kind == sandbox.LayerOverlay || !strings.Contains(l.Reason, "something is mounted in it") {
		t.Errorf("the layer is %v (%s), want none that leaves out what is mounted", l.Kind, l.Reason)
	}
	unmount()
	if l := plan(); l.Kind != sandbox.LayerOverlay {
		t.Errorf("with nothing mounted any more, the layer is %v: %s", l.Kind, l.Reason)
	}
}

func isFolderError(err error) bool {
	e, ok := errors.AsType[*sandbox.CommandError](err)
	return ok && e.Folder
}

// A plan is valid only for the folder as it was: a new name with another owner is
// noticed, and rules out an overlay.
func TestStrangerInProject(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root has every owner's id")
	}
	groups, err := os.Getgroups()
	other := -1
	for _, g := range groups {
		if g != os.Getgid() {
			other = g
		}
	}
	if err != nil || other < 0 {
		t.Skipf("this user is in one group alone: %v, %v", groups, err)
	}
	r := New(Options{TempDir: t.TempDir(), Changes: keptChanges(t)})
	t.Cleanup(r.Close)
	if report := r.Probe(t.Context()); report.Level != sandbox.LevelFull || report.Overlay != "" {
		t.Skipf("no overlay here: %v, %s", report.Level, report.Overlay)
	}
	dir := plantTree(t, map[string]string{"file": "x"})
	before := r.Layers(t.Context(), []string{dir})
	name := filepath.Join(dir, "theirs")
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Lchown(name, -1, other)); err != nil {
		t.Fatal(err)
	}
	p, c := inProject(t, dir, "true")
	p.Layers = before
	if _, err := r.Run(t.Context(), p, c); !isFolderError(err) || !strings.Contains(err.Error(), "belongs to another user or group") {
		t.Errorf("Run with the plan from before = %v, want that %s belongs to another group", err, name)
	}
}
