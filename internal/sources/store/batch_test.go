package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// Packs of one batch come in concurrently. A refused pack does not affect the others,
// and the folder is removed with the last.
func TestBatch(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "sources"), LockFile: filepath.Join(t.TempDir(), "packs.lock.json")}
	b, err := s.NewBatch()
	if err != nil {
		t.Fatal(err)
	}
	fill := func(text string) func(*stage.Stage) error {
		return func(st *stage.Stage) error { return st.Add(stage.Entry{Path: "SKILL.md"}, strings.NewReader(text)) }
	}
	one, err := b.Stage(stage.Limits{}, fill("one"))
	if err != nil {
		t.Fatal(err)
	}
	bad := errors.New("refused")
	if _, err := b.Stage(stage.Limits{}, func(st *stage.Stage) error { return errors.Join(fill("two")(st), bad) }); !errors.Is(err, bad) {
		t.Errorf("a refused pack: %v", err)
	}
	three, err := b.Stage(stage.Limits{}, fill("three"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(one.Dir))
	if err != nil || len(left) != 2 || one.Dir == three.Dir {
		t.Errorf("%d folders, %v, want those of two packs", len(left), err)
	}
	for _, p := range []*Staged{one, three} {
		if _, err := os.Stat(filepath.Join(p.Dir, "SKILL.md")); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(filepath.Dir(one.Dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the batch: %v", err)
	}
}

// What a killed process staged goes with the next command, and what another one stages
// stays.
func TestLeftBatch(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "sources"), LockFile: filepath.Join(t.TempDir(), "packs.lock.json")}
	b, err := s.NewBatch()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	left := b.temp.Path + "1" // nobody holds it
	if err := os.MkdirAll(filepath.Join(left, "pack1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if temp.InUse(left) {
		t.Skip("InUse: nothing tells here whether a folder is in use")
	}
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a killed process: %v", err)
	}
	if _, err := os.Lstat(b.temp.Path); err != nil {
		t.Errorf("the folder of a batch that is open: %v", err)
	}
}

func TestIsStagedName(t *testing.T) {
	for name, want := range map[string]bool{"pack": true, "pack1": true, "pack400": true, "": false, "pac": false, "pack.old": false, "packx": false, "pack1/..": false, "..": false, "pack1234567890": false} {
		if got := isStagedName(name); got != want {
			t.Errorf("isStagedName(%q) = %v", name, got)
		}
	}
}
