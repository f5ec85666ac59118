package packs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// What a pack says about itself is compared with exactly the bytes that were
// digested, whatever the times of its files.
func TestIsAsFound(t *testing.T) {
	const before, after = "---\nname: a\ndescription: One.\n---\nText.\n", "---\nname: a\ndescription: Two.\n---\nText.\n"
	const tool, otherTool = `{"name": "b", "description": "One.", "parameters": {}, "command": {"program": "true"}}`,
		`{"name": "b", "description": "Two.", "parameters": {}, "command": {"program": "true"}}`
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct {
		files  string
		change func(t *testing.T, dir string) // between scan and digest
		later  func(t *testing.T, dir string) // after the digest
		want   bool
	}{
		"nothing":     {files: "-- a/SKILL.md --\n" + before, want: true},
		"a link":      {files: "-- a/about.txt --\n" + before + "-- a/SKILL.md -> about.txt --\n", want: true},
		"a loose one": {files: "-- b.tool.json --\n" + tool + "\n", want: true},
		"the times": {files: "-- a/SKILL.md --\n" + before, want: true, change: func(t *testing.T, dir string) {
			setTime(t, filepath.Join(dir, "a/SKILL.md"), time.Now())
		}},
		"the body": {files: "-- a/SKILL.md --\n" + before, want: true, change: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a/SKILL.md"), before+"More.\n")
		}},
		"a description of the same size and time": {files: "-- a/SKILL.md --\n" + before, change: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a/SKILL.md"), after)
			setTime(t, filepath.Join(dir, "a/SKILL.md"), long)
		}},
		"what a link leads to": {files: "-- a/about.txt --\n" + before + "-- a/SKILL.md -> about.txt --\n", change: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a/about.txt"), after)
		}},
		"a loose one's description": {files: "-- b.tool.json --\n" + tool + "\n", change: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "b.tool.json"), otherTool)
		}},
		"a loose one that is none any more": {files: "-- b.tool.json --\n" + tool + "\n", change: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "b.tool.json"), "{")
		}},
		"a document without frontmatter": {files: "-- a/SKILL.md --\n" + before, change: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a/SKILL.md"), "Text.\n")
		}},
		"no document": {files: "-- a/SKILL.md --\n" + before, change: func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "a/SKILL.md")); err != nil {
				t.Fatal(err)
			}
		}},
		"back again after the digest": {files: "-- a/SKILL.md --\n" + before, change: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a/SKILL.md"), after)
		}, later: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a/SKILL.md"), before)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root := writeTree(t, c.files)
			filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					setTime(t, path, long)
				}
				return err
			})
			catalog, err := Scan(t.Context(), Options{Roots: []Root{{Dir: root, Trust: TrustUser}}})
			if err != nil || len(catalog.All()) != 1 {
				t.Fatalf("Scan = %v, %v, want one pack", catalog, err)
			}
			p := catalog.All()[0]
			if c.change != nil {
				c.change(t, root)
			}
			dir, err := p.OpenDir()
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			now, err := dir.Digest(t.Context(), &packfs.DigestCache{})
			if err != nil {
				t.Fatal(err)
			}
			if c.later != nil {
				c.later(t, root)
			}
			if got := p.IsAsFound(dir, now); got != c.want {
				t.Errorf("IsAsFound = %v, want %v", got, c.want)
			}
		})
	}
}

func setTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	must(t, os.Chtimes(path, at, at))
}
