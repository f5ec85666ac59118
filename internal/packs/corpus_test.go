package packs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
)

// shared returns the path of a file beside the repository. If it does not exist, it
// skips the test, unless PACKS_MCP_REQUIRE contains "corpora".
func shared(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
			t.Fatalf("corpora: %v", err)
		}
		t.Skipf("corpora: %s is not there", name)
	}
	return file
}

// extract unpacks the archive of real packs and returns its directory.
func extract(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "packs")
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := root.MkdirAll(path.Dir(h.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(h.Name, data, fs.FileMode(h.Mode)&0o777); err != nil {
			t.Fatal(err)
		}
	}
}

type verdict struct {
	Path      string
	Reference struct{ Valid bool } `json:"reference_validator"`
	Expected  *struct{ Name, Description string }
}

func TestCorpus(t *testing.T) {
	var verdicts struct{ Files []verdict }
	data, err := os.ReadFile(shared(t, "corpora/verdicts.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &verdicts); err != nil {
		t.Fatal(err)
	}
	if len(verdicts.Files) != 259 {
		t.Fatalf("%d verdicts, want 259", len(verdicts.Files))
	}
	base := extract(t, shared(t, "corpora/packs.tar.gz"))
	roots, err := filepath.Glob(filepath.Join(base, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(base, "*", "*", ".*", "skills"))
	if err != nil {
		t.Fatal(err)
	}
	byPath := make(map[string]*Pack) // :: path of the entry document below base → pack
	files := NewToolFiles("")
	for _, root := range slices.Concat(roots, hidden) {
		c, err := Scan(t.Context(), Options{Roots: []Root{{Dir: root, AttachAll: true, Trust: TrustUser}}})
		if err != nil {
			t.Fatal(err)
		}
		if p := c.Problems(); len(p) > 0 {
			t.Errorf("Problems() = %v, want none", p)
		}
		rel, err := filepath.Rel(base, root)
		if err != nil {
			t.Fatal(err)
		}
		ids := make(map[string]bool)
		for _, p := range c.All() {
			byPath[path.Join(filepath.ToSlash(rel), p.path, p.Entry)] = p
			if key := strings.ToLower(p.ID); ids[key] {
				t.Errorf("%s: the id %q again", p.Dir, p.ID)
			} else {
				ids[key] = true
			}
			// None of them declares a tool, despite all their headings and commands.
			if set, problems, err := files.Load(p); set != nil || len(problems) > 0 || err != nil || p.Loose {
				t.Errorf("%s: Load = %v, %v, %v, want no tool", p.Dir, set, problems, err)
			}
			if got, err := c.Lookup(p.ID); err != nil || got != p {
				t.Errorf("Lookup(%q) = %v, %v, want %s", p.ID, got, err, p.Dir)
			}
		}
	}

	loaded, refused := 0, 0
	for _, v := range verdicts.Files {
		p := byPath[v.Path]
		if p == nil {
			t.Errorf("%s: lost", v.Path)
			continue
		}
		delete(byPath, v.Path)
		if p.Valid {
			loaded++
		} else {
			refused++
			if !diag.HasErrors(p.Problems) {
				t.Errorf("%s: refused without an error", v.Path)
			}
		}
		if v.Expected != nil {
			if p.Name != v.Expected.Name {
				t.Errorf("%s: name %q, want %q", v.Path, p.Name, v.Expected.Name)
			}
			if p.Description != v.Expected.Description {
				t.Errorf("%s: description %q, want %q", v.Path, p.Description, v.Expected.Description)
			}
			if !p.Valid {
				t.Errorf("%s: not valid: %v", v.Path, p.Problems)
			}
		}
		if v.Reference.Valid {
			for _, d := range p.Problems {
				if d.Severity != diag.Info {
					t.Errorf("%s: %v, want no warning", v.Path, d)
				}
			}
		}
	}
	for at, p := range byPath {
		t.Errorf("%s: a pack without a verdict, %q", at, p.ID)
	}
	t.Logf("%d loaded, %d refused", loaded, refused)
}

// Real blocks that YAML refuses: if one line gives the name and another begins the
// description, the pack is read with a warning; otherwise it is refused.
func TestCorpusFailures(t *testing.T) {
	var failures struct {
		Classes map[string]struct {
			Examples []struct {
				Path   string
				Base64 []byte `json:"frontmatter_base64"`
			}
		}
	}
	data, err := os.ReadFile(shared(t, "data/yaml-failures.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &failures); err != nil {
		t.Fatal(err)
	}
	nameLine := regexp.MustCompile(`(?m)^name: (.+?)\s*$`)
	descriptionLine := regexp.MustCompile(`(?m)^description:`)
	for class, examples := range failures.Classes {
		for _, e := range examples.Examples {
			doc, problems := frontmatter.Parse("SKILL.md", append(e.Base64, "\n\nbody\n"...))
			closed := bytes.HasSuffix(bytes.TrimSpace(e.Base64), []byte("\n---")) // one example is cut off
			name := nameLine.FindSubmatch(e.Base64)
			if len(problems) == 0 {
				t.Errorf("%s: %s: no diagnostic", class, e.Path)
			}
			if !closed || name == nil || !descriptionLine.Match(e.Base64) {
				if doc != nil {
					t.Errorf("%s: %s: name %q, want refused", class, e.Path, doc.Name)
				}
				continue
			}
			if doc == nil || doc.Name != string(name[1]) || doc.Description == "" {
				t.Errorf("%s: %s: Parse = %v, %v, want the name %q", class, e.Path, doc, problems, name[1])
			}
		}
	}
}
