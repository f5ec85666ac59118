package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

func open(t *testing.T) *Store {
	dir := t.TempDir()
	return &Store{Dir: filepath.Join(dir, "sources"), LockFile: filepath.Join(dir, lock.Name)}
}

// add stages a pack of these files.
func add(s *Store, files map[string]string) (*Staged, lock.Entry, error) {
	b, err := s.NewBatch()
	if err != nil {
		return nil, lock.Entry{}, err
	}
	p, err := b.Stage(stage.Limits{}, func(st *stage.Stage) error {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if err := st.Add(stage.Entry{Path: name, Exec: strings.HasSuffix(name, ".sh")}, strings.NewReader(files[name])); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, b.Close()); err != nil {
		return nil, lock.Entry{}, err
	}
	return p, lock.Entry{
		Source: "./x", Resolved: "./x", Pin: p.Tree.Digest(), Digest: p.Tree.Digest(), ContentDigest: p.Tree.ContentDigest(), Unsigned: true,
	}, nil
}

func install(t *testing.T, s *Store, id string, files map[string]string) lock.Entry {
	t.Helper()
	p, e, err := add(s, files)
	if err == nil {
		err = errors.Join(s.Change(t.Context(), func(tx *Tx) error { return tx.Install(Arrival{id, p, e}) }), p.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func content(t *testing.T, s *Store, id string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir, id, "SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A pack is added, updated, undone twice and removed.
func TestLife(t *testing.T) {
	s := open(t)
	one := install(t, s, "acme/triage", map[string]string{"SKILL.md": "one", "scripts/run.sh": "#!/bin/sh\n"})
	two := install(t, s, "acme/triage", map[string]string{"SKILL.md": "two"})
	other := install(t, s, "other", map[string]string{"SKILL.md": "other"})
	for i, want := range []struct {
		text string
		e    lock.Entry
	}{{"two", two}, {"one", one}, {"two", two}} {
		if i > 0 {
			if err := s.Change(t.Context(), func(tx *Tx) error { _, err := tx.Undo("acme/triage"); return err }); err != nil {
				t.Fatal(err)
			}
		}
		l, err := s.Read()
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, s, "acme/triage"); got != want.text || l.Packs["acme/triage"].Digest != want.e.Digest || l.Packs["other"].Digest != other.Digest {
			t.Errorf("step %d: %q and %v, want %q", i, got, l.Packs, want.text)
		}
		if ok, err := s.Holds("acme/triage", want.e); !ok || err != nil {
			t.Errorf("step %d: the pack does not hold its bytes: %v", i, err)
		}
	}
	if err := s.Change(t.Context(), func(tx *Tx) error { return tx.Remove("acme/triage") }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(s.Dir, "acme")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the removed pack is there: %v", err)
	}
	if err := s.Change(t.Context(), func(tx *Tx) error { _, err := tx.Undo("acme/triage"); return err }); !errors.Is(err, ErrNoBefore) {
		t.Errorf("undo of a removed pack: %v, want ErrNoBefore", err)
	}
	left(t, s, "other")
}

// left fails if the store holds anything besides these packs, each with its bytes.
func left(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	l, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(l.Packs)); !slices.Equal(got, ids) {
		t.Errorf("the lock file has %q, want %q", got, ids)
	}
	for id, e := range l.Packs {
		if ok, err := s.Holds(id, e); !ok || err != nil {
			t.Errorf("%s does not hold the bytes of its entry: %v", id, err)
		}
	}
	for _, dir := range []string{"tmp", "removed"} {
		if entries, _ := os.ReadDir(filepath.Join(s.Dir, inner, dir)); len(entries) > 0 {
			t.Errorf("%s is left in %s", entries[0].Name(), dir)
		}
	}
	if _, err := os.Lstat(filepath.Join(s.Dir, stepFile)); err == nil {
		t.Error("a step is left")
	}
}

func TestRefused(t *testing.T) {
	s := open(t)
	install(t, s, "acme/triage", map[string]string{"SKILL.md": "one"})
	if err := os.MkdirAll(filepath.Join(s.Dir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"../x": "not the id", "": "not the id", ".store": "not the id", "A": "not the id", "acme": "one folder would be in the other",
		"acme/triage/more": "one folder would be in the other", "mine": "was not added by packs-mcp",
	} {
		p, e, err := add(s, map[string]string{"SKILL.md": "x"})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Change(t.Context(), func(tx *Tx) error { return tx.Install(Arrival{id, p, e}) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", id, err, want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	left(t, s, "acme/triage")
}

// A project has a link in place of a folder: nothing outside changes.
func TestLinkedFolder(t *testing.T) {
	s := open(t)
	outside := t.TempDir()
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.Dir, "acme")); err != nil {
		t.Skip(err)
	}
	p, e, err := add(s, map[string]string{"SKILL.md": "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := s.Change(t.Context(), func(tx *Tx) error { return tx.Install(Arrival{"acme/triage", p, e}) }); err == nil {
		t.Error("a pack was added through a link")
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("%s is outside now", entries[0].Name())
	}
}

// TestKilled kills processes that add, update, undo and remove packs. After each, the
// packs match the lock file.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("STORE_TEST_DIR"); dir != "" {
		s := &Store{Dir: filepath.Join(dir, "sources"), LockFile: filepath.Join(dir, lock.Name)}
		for i := 0; ; i++ {
			id := []string{"a", "acme/b", "acme/c"}[rand.IntN(3)]
			var err error
			switch rand.IntN(6) {
			case 5:
				installGroup(t, s, fmt.Sprint(rand.IntN(1_000_000)))
			case 0:
				err = s.Change(t.Context(), func(tx *Tx) error { return tx.Remove(id) })
			case 1:
				err = s.Change(t.Context(), func(tx *Tx) error { _, err := tx.Undo(id); return err })
			default:
				install(t, s, id, map[string]string{"SKILL.md": strings.Repeat("x", rand.IntN(100)), "scripts/a.sh": "#!/bin/sh\n"})
			}
			if err != nil && !errors.Is(err, ErrNoBefore) && !strings.Contains(err.Error(), "is not in") {
				t.Fatal(err)
			}
		}
	}
	s := open(t)
	kills := 20
	if testing.Short() {
		kills = 5
	}
	for range kills {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "STORE_TEST_DIR="+filepath.Dir(s.Dir))
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20*time.Millisecond + time.Duration(rand.IntN(60))*time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if strings.Contains(out.String(), "FAIL") {
			t.Fatal(out.String())
		}
		if err := s.Change(t.Context(), func(*Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		l, err := s.Read()
		if err != nil {
			t.Fatal(err)
		}
		left(t, s, slices.Sorted(maps.Keys(l.Packs))...)
		var versions []string
		for _, id := range group() {
			data, _ := os.ReadFile(filepath.Join(s.Dir, id, "SKILL.md"))
			versions = append(versions, string(data))
		}
		if v := slices.Compact(versions); len(v) != 1 {
			t.Errorf("of packs that come in together, there are the versions %q", v)
		}
		for _, id := range append(group(), "a", "acme/b", "acme/c") {
			_, err := os.Lstat(filepath.Join(s.Dir, id))
			if _, ok := l.Packs[id]; ok != (err == nil) {
				t.Errorf("%s: in the lock file %v, on disk %v", id, ok, err)
			}
		}
	}
}

// group returns packs that come in together, with more files than are synced one by
// one.
func group() []string { return []string{"group/a", "group/b", "group/c"} }

func installGroup(t *testing.T, s *Store, version string) {
	t.Helper()
	var all []Arrival
	for _, id := range group() {
		files := map[string]string{"SKILL.md": version}
		for i := range many / 2 {
			files[fmt.Sprintf("docs/%d.md", i)] = version
		}
		p, e, err := add(s, files)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		all = append(all, Arrival{id, p, e})
	}
	if err := s.Change(t.Context(), func(tx *Tx) error { return tx.Install(all...) }); err != nil {
		t.Fatal(err)
	}
}

// Either all packs come in, or none. Each has its previous version.
func TestTogether(t *testing.T) {
	s := open(t)
	installGroup(t, s, "one")
	installGroup(t, s, "two")
	left(t, s, group()...)
	for _, id := range group() {
		if err := s.Change(t.Context(), func(tx *Tx) error { _, err := tx.Undo(id); return err }); err != nil {
			t.Fatal(err)
		}
		if got := content(t, s, id); got != "one" {
			t.Errorf("%s is %q after undo, want one", id, got)
		}
	}
	for _, ids := range [][]string{{"x", "x"}, {"x", "x/y"}, {"x/y", "x"}, {"x", "group"}, {"x", "../y"}} {
		var all []Arrival
		for _, id := range ids {
			p, e, err := add(s, map[string]string{"SKILL.md": "x"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			all = append(all, Arrival{id, p, e})
		}
		if err := s.Change(t.Context(), func(tx *Tx) error { return tx.Install(all...) }); err == nil {
			t.Errorf("%q came in together", ids)
		}
		if _, err := os.Lstat(filepath.Join(s.Dir, "x")); err == nil {
			t.Errorf("of %q, one came in", ids)
		}
	}
}

// A pack that was added but that the lock file no longer names is a stray: it is
// removed if its bytes are unchanged, and it can be added again. A folder that was not
// added is not a stray.
func TestStrays(t *testing.T) {
	s := open(t)
	e := install(t, s, "acme/one", map[string]string{"SKILL.md": "one"})
	install(t, s, "two", map[string]string{"SKILL.md": "two"})
	if err := errors.Join(os.MkdirAll(filepath.Join(s.Dir, "mine"), 0o700), os.WriteFile(filepath.Join(s.Dir, "mine", "SKILL.md"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	strays := func() []string {
		t.Helper()
		l, err := s.Read()
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Strays(l)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, x := range all {
			ids = append(ids, x.ID)
			if !x.Same {
				ids[len(ids)-1] += " edited"
			}
		}
		return ids
	}
	if got := strays(); got != nil {
		t.Errorf("strays = %q, want none", got)
	}
	discard := func(id string) error {
		return s.Change(t.Context(), func(tx *Tx) error { return tx.Discard(id) })
	}
	if err := errors.Join(discard("two"), discard("mine")); err == nil || content(t, s, "two") != "two" || content(t, s, "mine") != "" {
		t.Errorf("discarding what is no stray: %v", err)
	}
	if err := os.Remove(s.LockFile); err != nil {
		t.Fatal(err)
	}
	if got := strays(); !slices.Equal(got, []string{"acme/one", "two"}) {
		t.Errorf("strays = %q, want both that were added", got)
	}
	// The notes beside the packs are not trusted for a folder with different bytes.
	file := filepath.Join(s.Dir, "two", "SKILL.md")
	if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("edited"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := strays(); !slices.Equal(got, []string{"acme/one", "two edited"}) {
		t.Errorf("strays = %q, want one edited", got)
	}
	if err := discard("two"); err == nil || content(t, s, "two") != "edited" {
		t.Errorf("discarding an edited pack: %v", err)
	}
	// The same bytes may be added over a stray; different bytes may not.
	again, other, err := add(s, map[string]string{"SKILL.md": "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := s.Change(t.Context(), func(tx *Tx) error { return tx.Install(Arrival{"acme/one", again, other}) }); err == nil {
		t.Error("other bytes took the place of a stray")
	}
	install(t, s, "acme/one", map[string]string{"SKILL.md": "one"})
	l, err := s.Read()
	if err != nil || l.Packs["acme/one"].Digest != e.Digest {
		t.Errorf("added again: %v, %+v", err, l)
	}
	if err := os.Remove(s.LockFile); err != nil {
		t.Fatal(err)
	}
	if err := discard("acme/one"); err != nil {
		t.Fatal(err)
	}
	if got := strays(); !slices.Equal(got, []string{"two edited"}) {
		t.Errorf("strays = %q, want the edited one alone", got)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "acme")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is left: %v", err)
	}
}
