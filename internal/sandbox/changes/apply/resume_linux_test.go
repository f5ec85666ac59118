package apply

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/layer"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// staged is a folder, and a set that is staged in it.
func staged(t *testing.T, before, run string) (dir string, folder *tree.Dir, r *record.Record) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "project")
	do(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { sh(t, dir, "chmod -R u+w .") })
	sh(t, dir, before)
	folder, err := tree.Open(dir)
	do(t, err)
	t.Cleanup(func() { _ = folder.Close() })
	names, err := protect.New(nil, nil)
	do(t, err)
	marker, err := folder.Moment()
	do(t, err)
	f := &layer.Folder{Path: dir, Dir: folder, Marker: marker, Names: names}
	to, err := os.Open(t.TempDir())
	do(t, err)
	t.Cleanup(func() { _ = to.Close() })
	c, err := f.Copy(t.Context(), to, layer.CopyLimits{})
	do(t, err)
	sh(t, to.Name(), run)
	up, err := tree.From(to)
	do(t, err)
	t.Cleanup(func() { _ = up.Close() })
	r = &record.Record{Set: record.Set{ID: "s"}, Stage: StagePrefix + "s"}
	r.Ops, _, err = layer.Read(t.Context(), f, up, c, layer.Ending{})
	do(t, err)
	w, err := Prepare(folder, r)
	do(t, err)
	kept, err := tree.Open(t.TempDir())
	do(t, err)
	defer kept.Close()
	do(t, w.Stage(t.Context(), kept))
	do(t, w.Close())
	return dir, folder, r
}

func sh(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func look(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	do(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == StagePrefix+"s" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, _ := os.ReadFile(p)
		all[p[len(dir):]] = fmt.Sprintf("%v %q", info.Mode(), data)
		return nil
	}))
	return all
}

// If a program is killed after any of the ops, the next one reaches the same final
// state, and still has the old files.
func TestResume(t *testing.T) {
	for _, tc := range []struct{ name, before, run string }{
		{"files", "echo 1 >a; echo 1 >b; chmod 644 a", "echo 2 >a; rm b; echo 2 >c; chmod 755 a"},
		{"a file becomes a folder", "echo 1 >x", "rm x; mkdir -p x/y; echo 2 >x/y/z"},
		{"a folder becomes a file", "mkdir -p x/y; echo 1 >x/y/z; echo 1 >x/w", "rm -r x; echo 2 >x"},
		{"a folder becomes a link", "mkdir -p x/y; echo 1 >x/y/z; echo 1 >ok", "rm -r x; ln -s ok x"},
		{"a link becomes a folder", "ln -s ok x; echo 1 >ok", "rm x; mkdir x; echo 2 >x/y"},
		{"a folder is moved", "mkdir -p x/y; echo 1 >x/y/z", "mv x v"},
		{"a folder is closed", "mkdir x; echo 1 >x/y; echo 1 >x/z", "rm x/y; echo 2 >x/z; echo 2 >x/v; chmod 555 x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var want map[string]string
			for done := 0; ; done++ {
				dir, folder, r := staged(t, tc.before, tc.run)
				if done > len(r.Ops) {
					break
				}
				data, err := r.Encode()
				do(t, err)
				if want == nil {
					plain := t.TempDir()
					t.Cleanup(func() { sh(t, plain, "chmod -R u+w .") })
					do(t, os.Chmod(plain, 0o755))
					sh(t, plain, tc.before+"; "+tc.run)
					want = look(t, plain)
				}
				first, err := Resume(folder, r)
				do(t, err)
				for i := range done {
					do(t, first.do(&r.Ops[i]))
				}
				do(t, first.Close())
				again, err := record.Decode(data) // as it is on disk
				do(t, err)
				second, err := Resume(folder, again)
				do(t, err)
				second.Run()
				for i := range again.Ops {
					o := &again.Ops[i]
					if o.State != record.Applied {
						t.Errorf("after %d ops, %s %q is %s: %s", done, o.Kind, o.Path, o.State, o.Reason)
					}
					if _, _, ok := second.Old(o); o.Was != nil && o.Was.IsFile() && o.Kind != record.KindMeta && !ok {
						t.Errorf("after %d ops, what %s %q took the name of is gone", done, o.Kind, o.Path)
					}
				}
				if diff := cmp.Diff(want, look(t, dir)); diff != "" {
					t.Errorf("after %d ops (-want +got):\n%s", done, diff)
				}
				do(t, second.Close())
				do(t, Clear(folder, again))
			}
		})
	}
}
