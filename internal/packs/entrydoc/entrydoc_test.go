package entrydoc_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/entrydoc"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// plant writes a txtar tree into a new folder, symlinks resolved.
func plant(t *testing.T, tree string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	testdata.Plant(t, dir, tree)
	return dir
}

// scan returns the only pack in a folder.
func scan(t *testing.T, dir string) *packs.Pack {
	t.Helper()
	c, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: dir, Trust: packs.TrustUser}}})
	if err != nil || len(c.All()) != 1 {
		t.Fatalf("Scan = %v, %v, want one pack", c, err)
	}
	return c.All()[0]
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The offset and the metadata are those of the file as it is now.
func TestEntryAsItIsNow(t *testing.T) {
	const head, longer = "---\nname: a\ndescription: b\nversion: 1.0\n---\n", "---\nname: a\ndescription: b\nversion: 1.0.1\nlicense: MIT\n---\n"
	p := scan(t, plant(t, "-- a/SKILL.md --\n"+head+"body\n"))
	dir, err := p.OpenDir()
	must(t, err)
	defer dir.Close()
	offset := func() int64 {
		t.Helper()
		n, err := entrydoc.BodyOffset(p, dir, &packfs.Tree{})
		must(t, err)
		return n
	}
	if got := offset(); got != int64(len(head)) {
		t.Errorf("BodyOffset = %d, want %d", got, len(head))
	}
	file := filepath.Join(p.Dir, "SKILL.md")
	write(t, file, longer+"body\n")
	if got := offset(); got != int64(len(longer)) {
		t.Errorf("BodyOffset of the changed file = %d, want %d", got, len(longer))
	}
	if got := entrydoc.MetadataOf(p); got != (entrydoc.Metadata{Version: "1.0.1", License: "MIT"}) {
		t.Errorf("MetadataOf = %+v", got)
	}
	write(t, file, strings.Replace(head, "b\n", "another\n", 1))
	if got := entrydoc.MetadataOf(p); got != (entrydoc.Metadata{}) {
		t.Errorf("MetadataOf a pack that is described differently now = %+v, want nothing", got)
	}
	write(t, file, "no frontmatter\n")
	if got := offset(); got != 0 {
		t.Errorf("BodyOffset of a file without frontmatter = %d, want 0", got)
	}
	must(t, os.Truncate(file, 1<<20+1))
	if _, err := entrydoc.BodyOffset(p, dir, &packfs.Tree{}); !errors.As(err, new(*packfs.TooLargeError)) {
		t.Errorf("BodyOffset of a file above the limit = %v, want an error", err)
	}
}

const looseTree = "-- sum.tool.json --\n" + `{"name": "sum_up", "description": "Sums a page up.", "modes": ["Coding"],
 "parameters": {"url": {"type": "string", "required": true, "description": "The page"}},
 "command": {"program": "cat", "args": ["--", "{{url}}\n"]}}
`

func TestLooseBody(t *testing.T) {
	p := scan(t, plant(t, looseTree))
	page, err := entrydoc.LooseBody(p, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := "# sum_up\n\nSums a page up.\n\n## Parameters\n\n`sum_up(url: string)`\n\n```json\n"
	if text := string(page.Data); !strings.HasPrefix(text, want) || !strings.Contains(text, `"The page"`) || !strings.HasSuffix(text, "\n    cat\n    --\n    {{url}}\\n\n") {
		t.Errorf("LooseBody =\n%s\nwant it to begin with\n%s", text, want)
	}
	if page.Path != "sum.tool.json" || page.Truncated || page.NextOffset != 0 || !page.UTF8 || page.MIME != "text/markdown" || page.Size != int64(len(page.Data)) {
		t.Errorf("LooseBody = %+v", page)
	}
	if cut, err := entrydoc.LooseBody(p, 0, 10); err != nil || string(cut.Data) != "# sum_up\n\n" || cut.Truncated {
		t.Errorf("LooseBody(0, 10) = %v, %v", cut, err)
	}
	if rest, err := entrydoc.LooseBody(p, page.Size-2, 1<<20); err != nil || string(rest.Data) != "n\n" {
		t.Errorf("LooseBody(end) = %v, %v", rest, err)
	}
	if _, err := entrydoc.LooseBody(p, page.Size+1, 1<<20); err == nil {
		t.Error("LooseBody(past the end) = nil, want an error")
	}
	must(t, os.WriteFile(p.Dir, []byte("{}"), 0o644))
	// It is no longer a tool, so the body is the file itself.
	if page, err := entrydoc.LooseBody(p, 0, 1<<20); err != nil || string(page.Data) != "{}" {
		t.Errorf("LooseBody = %v, %v, want the file", page, err)
	}
	if err := os.Remove(p.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := entrydoc.LooseBody(p, 0, 1<<20); err == nil {
		t.Error("LooseBody = nil, want an error for a file that is gone")
	}
}

// A long document is cut between characters.
func TestLooseBodyLong(t *testing.T) {
	dir := plant(t, "-- a.tool.json --\n"+`{"name": "a", "description": "`+strings.Repeat("é", 32<<10)+`", "command": {"program": "true", "args": []}}`+"\n")
	p := scan(t, dir)
	for length := range int64(9) {
		page, err := entrydoc.LooseBody(p, 0, 20+length)
		if err != nil || !strings.HasPrefix(string(page.Data), "# a\n\né") || int64(len(page.Data)) > 20+length || strings.ToValidUTF8(string(page.Data), "?") != string(page.Data) {
			t.Errorf("LooseBody(0, %d) = %v, %v", 20+length, page, err)
		}
	}
}

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
		"a loose tool that is no longer JSON": {files: "-- b.tool.json --\n" + tool + "\n", change: func(t *testing.T, dir string) {
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
			root := plant(t, c.files)
			filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					setTime(t, path, long)
				}
				return err
			})
			p := scan(t, root)
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
			if got := entrydoc.IsAsFound(p, dir, now); got != c.want {
				t.Errorf("IsAsFound = %v, want %v", got, c.want)
			}
		})
	}
}

func setTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	must(t, os.Chtimes(path, at, at))
}
