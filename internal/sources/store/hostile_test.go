package store

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// A step that came with a project, and that none of our processes began, neither
// removes nor moves the user's files.
func TestStepOfAProject(t *testing.T) {
	for name, make := range map[string]func(e lock.Entry) step{
		"it removes a folder":              func(lock.Entry) step { return step{ID: "mine"} },
		"it removes one that was edited":   func(e lock.Entry) step { return step{ID: "mine", Before: &e} },
		"what it brings is a folder":       func(e lock.Entry) step { return step{ID: "added", Entry: &e, Staged: "mine"} },
		"the same, to be kept":             func(e lock.Entry) step { return step{ID: "added", Before: &e, Entry: &e, Staged: "mine"} },
		"what it brings is all":            func(e lock.Entry) step { return step{ID: "added", Entry: &e, Staged: "."} },
		"it leads out of the store's own":  func(e lock.Entry) step { return step{ID: "added", Entry: &e, Staged: inner + "/tmp/../../mine"} },
		"the same, in as many parts":       func(e lock.Entry) step { return step{ID: "added", Entry: &e, Staged: inner + "/tmp/../pack"} },
		"it leads through a link":          func(e lock.Entry) step { return step{ID: "added", Entry: &e, Staged: inner + "/tmp/link/pack"} },
		"it puts other bytes into a place": func(e lock.Entry) step { return step{ID: "mine", Entry: &e, Staged: inner + "/tmp/x/pack"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			e := install(t, s, "added", map[string]string{"SKILL.md": "added"})
			for dir, text := range map[string]string{"mine": "mine", "mine/pack": "inside", inner + "/tmp/x/pack": "added"} {
				if err := os.MkdirAll(filepath.Join(s.Dir, dir), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(s.Dir, dir, "SKILL.md"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("../../mine", filepath.Join(s.Dir, inner, "tmp", "link")); err != nil {
				t.Skip(err)
			}
			data, err := json.Marshal([]step{make(e)})
			if err == nil {
				err = os.WriteFile(filepath.Join(s.Dir, stepFile), data, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Log(s.Recover(t.Context()))
			for dir, want := range map[string]string{"mine": "mine", "mine/pack": "inside", "added": "added"} {
				if got := content(t, s, dir); got != want {
					t.Errorf("%s has %q, want %q", dir, got, want)
				}
			}
		})
	}
}

// No step may change the state for which another step was allowed.
func TestForeignStepsTogether(t *testing.T) {
	for name, ids := range map[string][]string{"the same place": {"new", "new"}, "one inside the other": {"new", "new/inner"}, "one around the other": {"new/inner", "new"}} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			e := install(t, s, "mine", map[string]string{"SKILL.md": "mine"})
			var steps []step
			for _, id := range ids {
				steps = append(steps, step{ID: id, Before: &e})
			}
			data, err := json.Marshal(steps)
			if err == nil {
				err = os.WriteFile(filepath.Join(s.Dir, stepFile), data, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Recover(t.Context()); err == nil {
				t.Error("the steps are finished")
			}
			if got := content(t, s, "mine"); got != "mine" {
				t.Errorf("mine has %q", got)
			}
		})
	}
}

// A forged note that a folder around or inside the lock file's packs was added does
// not make prune remove them.
func TestStrayAroundOthers(t *testing.T) {
	s := open(t)
	install(t, s, "acme/one", map[string]string{"SKILL.md": "one", "part/SKILL.md": "part"})
	for _, id := range []string{"acme", "acme/one/part"} {
		tree, err := treeOf(s.path(id))
		if err != nil {
			t.Fatal(err)
		}
		e := lock.Entry{Source: "./x", Resolved: "./x", Pin: tree.Digest(), Digest: tree.Digest(), ContentDigest: tree.ContentDigest(), Unsigned: true}
		data, err := json.Marshal(placed{id, e})
		if err == nil {
			err = os.WriteFile(filepath.Join(s.Dir, placedFile(id)), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Change(t.Context(), func(tx *Tx) error { return tx.Discard(id) }); err == nil {
			t.Errorf("%s was removed", id)
		}
	}
	l, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	if all, err := s.Strays(l); err != nil || len(all) != 0 {
		t.Errorf("Strays() = %v, %v, want none", all, err)
	}
	left(t, s, "acme/one")
}

// A link in place of the previous version does not make update --undo move another
// folder.
func TestBeforeIsALink(t *testing.T) {
	s := open(t)
	e := install(t, s, "added", map[string]string{"SKILL.md": "added"})
	mine := filepath.Join(s.Dir, "mine")
	if err := os.CopyFS(filepath.Join(mine, "pack"), os.DirFS(s.path("added"))); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(e)
	if err == nil {
		err = os.WriteFile(filepath.Join(mine, "entry.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../mine", filepath.Join(s.Dir, before("added"))); err != nil {
		t.Skip(err)
	}
	if err := s.Change(t.Context(), func(tx *Tx) error { _, err := tx.Undo("added"); return err }); !errors.Is(err, ErrNoBefore) {
		t.Errorf("Undo() = %v, want ErrNoBefore", err)
	}
	install(t, s, "added", map[string]string{"SKILL.md": "another"})
	if got := content(t, s, "mine/pack"); got != "added" {
		t.Errorf("mine/pack has %q", got)
	}
}
