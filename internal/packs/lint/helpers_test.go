package lint

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// shared returns the path of a file beside the repository, and skips the test
// when it is not there, unless PACKS_MCP_REQUIRE holds "corpora".
func shared(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "shared", name))
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

// writeFile writes a file below dir.
func writeFile(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeTree writes the files of an archive below a new directory. A file
// called "a -> b" is a symlink a to b. In a file called "x.quoted", the lines
// are Go string literals, for what an archive cannot hold; the file is "x".
func writeTree(t *testing.T, files []txtar.File) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		if name, target, ok := strings.Cut(f.Name, " -> "); ok {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.FromSlash(target), filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Skipf("symlinks: %v", err)
			}
			continue
		}
		data := f.Data
		name, quoted := strings.CutSuffix(f.Name, ".quoted")
		if quoted {
			data = unquote(t, f.Name, data)
		}
		writeFile(t, dir, name, data)
	}
	return dir
}

// codes returns the codes of all problems of a report, each once, sorted.
func codes(r Report) []string {
	var found []string
	for _, p := range r.Packs {
		for _, d := range p.Problems {
			found = append(found, d.Code)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// check checks path, which must not fail.
func check(t *testing.T, path string, opts Options) Report {
	t.Helper()
	r, err := Check(t.Context(), path, opts)
	if err != nil {
		t.Fatalf("Check(%q) failed: %v", path, err)
	}
	if len(r.Packs) == 0 {
		t.Fatalf("Check(%q) says nothing", path)
	}
	for _, p := range r.Packs {
		if p.Valid == diag.HasErrors(p.Problems) {
			t.Errorf("Check(%q): %s is valid: %v, with the problems %v", path, p.Path, p.Valid, p.Problems)
		}
		for _, d := range p.Problems {
			if d.Hint == "" || d.Message == "" || d.Code == "" || d.File == "" {
				t.Errorf("Check(%q): a problem without code, file, message or hint: %+v", path, d)
			}
		}
	}
	return r
}

// extract unpacks the archive of real packs and returns its directory.
func extract(t testing.TB, archive string) string {
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
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "packs")
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// unquote reads lines that are Go string literals; "x" * 3 is "xxx".
func unquote(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	var out []byte
	for line := range strings.Lines(string(data)) {
		literal, times, repeated := strings.Cut(strings.TrimSpace(line), " * ")
		text, err := strconv.Unquote(literal)
		n := 1
		if repeated && err == nil {
			n, err = strconv.Atoi(times)
		}
		if err != nil {
			t.Fatalf("%s: %q: %v", name, line, err)
		}
		out = append(out, strings.Repeat(text, n)...)
	}
	return out
}
