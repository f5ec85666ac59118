//go:build unix

package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

func TestInputs(t *testing.T) {
	root := t.TempDir()
	dir, pack := filepath.Join(root, "ws"), filepath.Join(root, "pack")
	for path, mode := range map[string]os.FileMode{"ws/r.py": 0o644, "ws/sub/data.csv": 0o600, "pack/run.sh": 0o755, "other.txt": 0o644} {
		path = filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(path), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(root, "other.txt"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	p, of := new(Planner), &Call{Pack: &packs.Pack{Dir: pack}}
	for _, c := range []struct {
		args []string
		want []string // below root
	}{
		{[]string{"r.py"}, []string{"ws/r.py"}},
		{[]string{"./r.py", "r.py", "-x"}, []string{"ws/r.py"}},
		{[]string{"--file=sub/data.csv", filepath.Join(root, "other.txt")}, []string{"ws/sub/data.csv", "other.txt"}},
		{[]string{"link"}, []string{"other.txt"}},
		{[]string{"../pack/run.sh", "sub", "", "=", "none.txt", "/etc/passwd", "/proc/self/environ", "/dev/null"}, nil},
	} {
		files, err := p.ownInputs(of, &permissions{}, &sandbox.Command{Dir: dir, Args: c.args}, true)
		var got []string
		for _, f := range files.files {
			rel, _ := filepath.Rel(root, f.Path)
			got = append(got, rel)
			if !strings.HasPrefix(f.Digest, "sha256:") {
				t.Errorf("inputs(%q): %s has the digest %q", c.args, rel, f.Digest)
			}
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("inputs(%q) = %q, %v, want %q", c.args, got, err, c.want)
		}
	}
	many := make([]string, 0, maxInputs+1)
	for i := range maxInputs + 1 {
		name := filepath.Join(dir, strings.Repeat("f", i+1))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		many = append(many, name)
	}
	if _, err := p.ownInputs(of, &permissions{}, &sandbox.Command{Dir: dir, Args: many}, true); err == nil {
		t.Errorf("inputs of %d files = nil, want an error", len(many))
	}
}
