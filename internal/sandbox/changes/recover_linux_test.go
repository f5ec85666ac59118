package changes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/apply"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/layer"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
)

// stopIn carries a set out until it reaches a phase, and stops there, like a killed
// server.
func stopIn(t *testing.T, w *world, state string, stop record.Phase) {
	t.Helper()
	w.done()
	s, f := w.store, w.turn.folders[0]
	up := mustTree(t, w.layer.Dir)
	defer up.Close()
	ops, _, err := layer.Read(t.Context(), &f.Folder, up, w.layer.Copy, Ending{})
	do(t, err)
	r := s.journal.New(Run{ID: "r"}, f.Path, f.meta)
	r.Ops = ops
	do(t, s.journal.Commit(t.Context(), f.Dir, r))
	if stop == record.Staging { // the same files, with the record from before them
		r.Phase, r.Ops = stop, nil
		data, err := r.Encode()
		do(t, err)
		do(t, os.WriteFile(filepath.Join(state, "sets", r.ID, "set.json"), data, 0o600))
	}
	do(t, w.turn.Close())
}

// Before the end mark, nothing counts. After it, the next start finishes the set and
// checks each conflict again.
func TestRecovery(t *testing.T) {
	for _, stop := range []record.Phase{record.Staging, record.Committed} {
		t.Run(string(stop), func(t *testing.T) {
			state, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
			s := openStore(t, func(o *Options) { o.Dir = state })
			plant(t, dir, map[string]string{"a": "1", "edited": "1", "gone": "1", "removed": "1"})
			w := begin(t, s, "copy", Folder{Path: dir})
			plant(t, w.at, map[string]string{"a": "run", "edited": "run", "new": "run", "taken": "run", "CLAUDE.md": "run"})
			do(t, os.Remove(filepath.Join(w.at, "gone")))
			do(t, os.Remove(filepath.Join(w.at, "removed")))
			stopIn(t, w, state, stop)
			plant(t, dir, map[string]string{"edited": "user", "taken": "user", "removed": "user"})
			user := look(t, dir)
			for name := range user {
				if strings.HasPrefix(name, apply.StagePrefix) {
					delete(user, name)
				}
			}
			// Another server of the user's, and then a run in the folder.
			_, err := Open(t.Context(), Options{Dir: state})
			do(t, err)
			got := look(t, dir)
			if stop == record.Staging {
				same(t, "the folder", user, got)
				if list, err := s.List(); err != nil || len(list) != 0 {
					t.Errorf("List = %v, %v", list, err)
				}
				return
			}
			for p, want := range map[string]string{"a": "run", "edited": "user", "new": "run", "taken": "user", "removed": "user"} {
				if data, err := os.ReadFile(filepath.Join(dir, p)); err != nil || string(data) != want {
					t.Errorf("%q holds %q, %v, want %q", p, data, err, want)
				}
			}
			if _, there := got["gone"]; there {
				t.Error("what the run removed is there")
			}
			for name := range got {
				if strings.HasPrefix(name, ".packs-mcp") {
					t.Errorf("%q is left", name)
				}
			}
			list, err := s.List()
			do(t, err)
			if len(list) != 1 || list[0].Count(Held) != 4 || list[0].Count(Applied) != 3 {
				t.Fatalf("List = %+v", list)
			}
			v, err := s.Show(t.Context(), list[0].ID, "edited")
			do(t, err)
			if _, err := s.Apply(t.Context(), list[0].ID, v.Token, "edited"); err != nil {
				t.Error(err)
			}
			if data, _ := os.ReadFile(filepath.Join(dir, "edited")); string(data) != "run" {
				t.Errorf("what is held after recovery cannot be applied: %q", data)
			}
		})
	}
}

// Undo leaves alone what changed since, and reverts the rest.
func TestUndoConflicts(t *testing.T) {
	s, dir := openStore(t, nil), t.TempDir()
	plant(t, dir, map[string]string{"a": "1", "b": "1", "c": "1"})
	w := begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"a": "2", "b": "2", "d/e": "2"})
	do(t, os.Remove(filepath.Join(w.at, "c")))
	set := w.finish(Ending{})
	plant(t, dir, map[string]string{"b": "user", "c": "user", "d/user": "user"})
	undo, err := s.Undo(t.Context(), set.ID)
	do(t, err)
	got := states(undo)
	for p, want := range map[string]string{"a": "replace applied", "b": "replace held conflict", "c": "create held conflict", "d/e": "remove applied", "d": "rmdir held conflict"} {
		if got[p] != want {
			t.Errorf("%q = %q, want %q", p, got[p], want)
		}
	}
	for p, want := range map[string]string{"a": "1", "b": "user", "c": "user", "d/user": "user"} {
		if data, err := os.ReadFile(filepath.Join(dir, p)); err != nil || string(data) != want {
			t.Errorf("%q holds %q, %v, want %q", p, data, err, want)
		}
	}
	v, err := s.Show(t.Context(), undo.ID, "b")
	do(t, err)
	_, err = s.Apply(t.Context(), undo.ID, v.Token, "b")
	do(t, err)
	if data, _ := os.ReadFile(filepath.Join(dir, "b")); string(data) != "1" {
		t.Errorf("what was there first cannot be had any more: %q", data)
	}
	if first, err := s.Get(set.ID); err != nil || states(first)["a"] != "replace undone" || states(first)["b"] != "replace applied" {
		t.Errorf("the first set: %v, %v", states(first), err)
	}
}

// A server dies while another run waits for its turn, and leaves a set in a folder
// below. The run that gets the turn finds the set finished, and waited once.
func TestRecoveryOfHolder(t *testing.T) {
	state, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
	s := openStore(t, func(o *Options) { o.Dir = state })
	plant(t, dir, map[string]string{"sub/a": "1"})
	w := begin(t, s, "copy", Folder{Path: filepath.Join(dir, "sub")})
	plant(t, w.at, map[string]string{"a": "run"})
	waits, got := make(chan Holder, 2), make(chan error, 1)
	var next *Turn
	go func() {
		var err error
		next, err = s.Begin(t.Context(), Run{ID: "next"}, func(h Holder) { waits <- h }, Folder{Path: dir})
		got <- err
	}()
	if h := <-waits; h.Run.ID != "r1" {
		t.Errorf("the next run waits for %v, want r1", h)
	}
	stopIn(t, w, state, record.Committed)
	do(t, <-got)
	if data, err := os.ReadFile(filepath.Join(dir, "sub", "a")); err != nil || string(data) != "run" {
		t.Errorf("the next run finds %q, %v, want the set of the one before it", data, err)
	}
	if len(waits) > 0 {
		t.Error("the next run was told twice that it waits")
	}
	do(t, next.Close())
}
