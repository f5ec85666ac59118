package packs

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
)

// shared returns the path of a file beside the repository, and skips the test
// when it is not there, unless PACKS_MCP_REQUIRE holds "corpora".
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
	Path        string
	Frontmatter string
	Reference   struct{ Valid bool } `json:"reference_validator"`
	Expected    *struct{ Name, Description string }
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
	root := extract(t, shared(t, "corpora/packs.tar.gz"))
	c, err := Scan(t.Context(), Options{Roots: []Root{{Dir: root, AttachAll: true, Trust: TrustUser}}})
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Problems(); len(p) > 0 {
		t.Errorf("Problems() = %v, want none", p)
	}
	byPath := make(map[string]*Pack)
	ids := make(map[string]*Pack)
	for _, p := range c.All() {
		byPath[p.path+"/"+p.Entry] = p
		if other := ids[strings.ToLower(p.ID)]; other != nil {
			t.Errorf("%s and %s have the id %q", p.path, other.path, p.ID)
		}
		ids[strings.ToLower(p.ID)] = p
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
			if v.Expected != nil || v.Frontmatter == "ok" {
				t.Logf("%s: refused: %v", v.Path, p.Problems)
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
				// Collisions come from eight collections in one root.
				if d.Severity != diag.Info && d.Code != CodeIDCollision {
					t.Errorf("%s: %v, want no warning", v.Path, d)
				}
			}
		}
	}
	for at, p := range byPath {
		t.Logf("%s: a pack without a verdict, %q, %v", at, p.ID, p.Problems)
	}
	if want := len(c.packs) - refused; len(c.Attached()) != want {
		t.Errorf("%d packs attached, want %d", len(c.Attached()), want)
	}
	t.Logf("%d loaded, %d refused, %d more", loaded, refused, len(byPath))
}

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
	_ = base64.StdEncoding
	for class, examples := range failures.Classes {
		for _, e := range examples.Examples {
			doc, problems := frontmatter.Parse("SKILL.md", append(e.Base64, "\n\nbody\n"...))
			if doc == nil { t.Logf("%s: %s: NIL %v", class, e.Path, problems); continue }
			t.Logf("%s: %s: %q %.80q\n   hint=%q tools=%q\n   %v", class, e.Path, doc.Name, doc.Description, doc.ArgumentHint, doc.AllowedTools, problems)
		}
	}
}
