package servertest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// Triage is a pack with documents and one tool.
const Triage = `
-- triage/SKILL.md --
---
name: triage
description: Triage incidents.
tags: [ops]
---
# Triage

Read docs/steps.md.
-- triage/docs/steps.md --
Step one.
-- triage/tools.json --
{"tools": [{"name": "greet", "description": "Say hello.",
  "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"], "additionalProperties": false},
  "command": {"program": "./scripts/greet.sh", "args": ["{{who}}"]}}]}
-- triage/scripts/greet.sh* --
#!/bin/sh
echo "hello $1"
echo made > made.txt
`

// Hold is a pack whose program runs until a file "go" is in its workspace.
const Hold = `
-- hold/SKILL.md --
---
name: hold
description: Runs until it is let go.
---
-- hold/hold.sh* --
#!/bin/sh
echo $$ > pid.new && mv pid.new pid
while ! [ -e go ]; do sleep 0.02; done
echo let go
`

// HoldParams returns the parameters of a call that runs the program of [Hold].
func HoldParams() map[string]any {
	return map[string]any{"name": "capability_packs_exec_best_effort", "arguments": map[string]any{"pack_id": "hold", "command": "./hold.sh"}}
}

// Plant writes the files of a txtar tree. A name that ends in "*" is made
// executable.
func Plant(t *testing.T, root, tree string) {
	t.Helper()
	for _, f := range txtar.Parse([]byte(tree)).Files {
		name, exec := strings.CutSuffix(f.Name, "*")
		mode := os.FileMode(0o644)
		if exec {
			mode = 0o755
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, mode); err != nil {
			t.Fatal(err)
		}
	}
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
	Plant(t, h.Home, `
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

// LogBuffer holds what the server logged. It is safe for concurrent use.
type LogBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Until waits until is reports true.
func Until(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("it does not come about that %s", what)
		}
	}
}
