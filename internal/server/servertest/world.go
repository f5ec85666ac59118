package servertest

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// HoldParams returns the parameters of a call that runs the program of the pack "hold".
func HoldParams() map[string]any {
	return map[string]any{"name": "capability_packs_exec_best_effort", "arguments": map[string]any{"pack_id": "hold", "command": "./hold.sh"}}
}

// NeedShell skips a test whose packs have POSIX scripts where no shell runs
// them.
func NeedShell(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("/bin/sh: not on this system, and the test's packs are POSIX scripts")
	}
}

// A House is a home folder, with a project, a pack and other things in it.
type House struct{ Home, Project string }

// NewHouse plants a House.
func NewHouse(t *testing.T) House {
	t.Helper()
	dir := paths.WithoutLinks(t.TempDir())
	h := House{filepath.Join(dir, "home", "ada"), filepath.Join(dir, "home", "ada", "site")}
	testdata.Plant(t, h.Home, `
-- .ssh/id_rsa --
private
-- .config/gh/hosts.yml --
hosts
-- dotfiles/gitconfig --
[user] name = Ada
-- cache/x --
-- site/README.md --
-- site/.git/config --
-- site/.git/HEAD --
-- site/docs/index.md --
-- packs/acme/deploy/SKILL.md --
-- packs/acme/deploy/src/x --
`)
	if err := os.Symlink("dotfiles/gitconfig", filepath.Join(h.Home, ".gitconfig")); err != nil {
		t.Fatal(err)
	}
	return h
}

// In is a path in the home folder.
func (h House) In(elems ...string) string {
	return filepath.Join(append([]string{h.Home}, elems...)...)
}

// NewRunner returns a runner whose highest level is level.
func NewRunner(t *testing.T, level sandbox.Level) *runner.Runner {
	t.Helper()
	kept, err := changes.Open(t.Context(), changes.Options{Dir: filepath.Join(t.TempDir(), "changes")})
	if err != nil {
		t.Fatal(err)
	}
	o := runner.Options{Grace: 100 * time.Millisecond, Changes: kept}
	for l := level + 1; l <= sandbox.LevelFull; l++ {
		o.Skip = append(o.Skip, l)
	}
	return runner.New(o)
}

// Repeat is a reader that returns the same byte N times.
type Repeat struct {
	B byte
	N int64
}

func (r *Repeat) Read(p []byte) (int, error) {
	if r.N == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), r.N))
	for i := range n {
		p[i] = r.B
	}
	r.N -= int64(n)
	return n, nil
}

// Until waits until is reports true.
func Until(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(2 * time.Minute) // a busy machine takes its time
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}
