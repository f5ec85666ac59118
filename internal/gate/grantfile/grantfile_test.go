package grantfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

var since = time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC)

func grant(id string) grants.Grant {
	return grants.Grant{
		ID: id, Digest: "d-" + id, Subject: "s-" + id, Since: since, Covers: "the tool hello, with any valid arguments",
		Kind: call.KindRun, Pack: "tools", Dir: "/packs/tools", Tool: "hello",
		Facts: []call.Fact{{Name: "tool", Values: []string{"hello", "sha256:1"}}, {Name: "none", Values: []string{}}, {Name: "folder", Values: []string{"/work"}}},
		Files: []call.File{{Path: "a.py", Digest: "sha256:2"}},
	}
}

// folder returns a folder that only this user may write to, whatever the umask.
func folder(t *testing.T) string {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func add(s *Store, given ...grants.Grant) error {
	return s.Update(func(have []grants.Grant) ([]grants.Grant, error) { return append(have, given...), nil })
}

func mustAdd(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := add(s, grant(id)); err != nil {
			t.Fatalf("Update(add %q) = %v", id, err)
		}
	}
}

func ids(t *testing.T, s *Store) []string {
	t.Helper()
	given, err := s.Load()
	if err != nil {
		t.Fatalf("Load = %v", err)
	}
	return idsOf(given)
}

func idsOf(given []grants.Grant) []string {
	var ids []string
	for _, g := range given {
		ids = append(ids, g.ID)
	}
	return ids
}

func TestStore(t *testing.T) {
	path := filepath.Join(folder(t), "state", "grants.json")
	s, other := Open(path), Open(path) // like two servers
	if got, err := s.Load(); err != nil || len(got) > 0 {
		t.Fatalf("Load = %v, %v, want none", got, err)
	}
	if err := s.Update(func(g []grants.Grant) ([]grants.Grant, error) { return g, nil }); err != nil || exists(path) {
		t.Fatalf("Update with nothing to keep = %v, made the file: %v", err, exists(path))
	}
	a, b := grant("a"), grant("b")
	b.Void = &grants.Void{At: since, Changes: []string{"the script x changed"}}
	b.Argv, b.Tool = []string{"/bin/echo", "\u202e<&> é", "\U000e0041\x1b"}, ""
	if err := add(s, a); err != nil {
		t.Fatal(err)
	}
	if err := add(other, b); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{s, other, Open(path)} {
		got, err := s.Load()
		if diff := cmp.Diff([]grants.Grant{a, b}, got); err != nil || diff != "" {
			t.Errorf("Load = %v (-want +got):\n%s", err, diff)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(string(data), func(r rune) bool { return r != '\n' && hidden(r) }) || !strings.Contains(string(data), "<&> é") {
		t.Errorf("the file is not safe to look at, or not readable: %q", data)
	}
	if lines := strings.Count(string(data), "\n"); lines != 4 || !json.Valid(data) {
		t.Errorf("the file has %d lines, valid JSON: %v; want 4, true:\n%s", lines, json.Valid(data), data)
	}

	sentinel := errors.New("no")
	for _, change := range []func([]grants.Grant) ([]grants.Grant, error){
		func([]grants.Grant) ([]grants.Grant, error) { return nil, sentinel },
		func(g []grants.Grant) ([]grants.Grant, error) { return append(g, grant("a")), nil },
		func(g []grants.Grant) ([]grants.Grant, error) {
			return append(g, grants.Grant{ID: "x", Kind: "run"}), nil
		},
		func(g []grants.Grant) ([]grants.Grant, error) {
			return append(g, grants.Grant{Digest: "x", Kind: "run"}), nil
		},
		func(g []grants.Grant) ([]grants.Grant, error) {
			return append(g, grants.Grant{ID: "x", Digest: "x"}), nil
		},
		func(g []grants.Grant) ([]grants.Grant, error) {
			return append(g, grants.Grant{ID: "x", Digest: "x", Kind: "run", Facts: []call.Fact{{Name: "folder", Values: []string{"/\xff"}}}}), nil
		},
	} {
		if err := s.Update(change); err == nil {
			t.Error("Update with what cannot be kept = nil, want an error")
		}
	}
	before, _ := os.Lstat(path)
	if err := s.Update(func(g []grants.Grant) ([]grants.Grant, error) { return g, nil }); err != nil {
		t.Errorf("Update without a change = %v", err)
	}
	if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("Update without a change wrote the file again, %v", err)
	}

	// If all grants are removed, the file stays, with none in it.
	if err := s.Update(func([]grants.Grant) ([]grants.Grant, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, other); len(got) > 0 {
		t.Errorf("Load after all were taken away = %q", got)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 3 { // the file, its key, and the lock
		t.Errorf("%v in the folder, want nothing left over", files)
	}
	if runtime.GOOS != "windows" {
		for _, f := range files {
			if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v, %v, want 0600", f.Name(), info.Mode(), err)
			}
		}
	}
}

// If a caller changes what it was given, the next caller still gets the file's
// content.
func TestLoadIsTheCallersOwn(t *testing.T) {
	path := filepath.Join(folder(t), "grants.json")
	s := Open(path)
	mustAdd(t, s, "a")
	g := grant("b")
	g.Argv, g.Void = []string{"x"}, &grants.Void{At: since, Changes: []string{"x"}}
	if err := add(s, g); err != nil {
		t.Fatal(err)
	}
	later(s)
	want, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(given []grants.Grant) {
		for i := range given {
			g := &given[i]
			for j := range g.Facts {
				g.Facts[j].Values = append(g.Facts[j].Values, "spoiled") // must not affect the next grant
				g.Facts[j].Values[0] = "spoiled"
				g.Facts[j].Name = "spoiled"
			}
			for j := range g.Files {
				g.Files[j].Path = "spoiled"
			}
			for j := range g.Argv {
				g.Argv[j] = "spoiled"
			}
			if g.Void != nil {
				g.Void.Changes[0] = "spoiled"
				g.Void = nil
			}
			g.Digest = "spoiled"
		}
	}
	for range 2 {
		got, err := s.Load()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("Load = %v (-want +got):\n%s", err, diff)
		}
		spoil(got)
		sentinel := errors.New("no")
		if err := s.Update(func(g []grants.Grant) ([]grants.Grant, error) { spoil(g); return nil, sentinel }); !errors.Is(err, sentinel) {
			t.Fatalf("Update = %v", err)
		}
	}
}

// later makes s treat files as unchanged for long, so that it need not read them
// again.
func later(s *Store) {
	now := func() time.Time { return time.Now().Add(time.Hour) }
	s.file.Now, s.key.Now = now, now
}

// AP-10 of the hostile cases: whatever is wrong, nothing is allowed, nothing is
// overwritten, and a person is told why.
func TestRefused(t *testing.T) {
	type place struct{ file, key, dir string }
	read := func(t *testing.T, path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	write := func(t *testing.T, path, data string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	edit := func(old, new string) func(*testing.T, place) {
		return func(t *testing.T, p place) {
			data := read(t, p.file)
			if !strings.Contains(data, old) {
				t.Fatalf("no %q in %s", old, data)
			}
			write(t, p.file, strings.Replace(data, old, new, 1))
		}
	}
	// sealed returns content with a valid seal that this program would not write.
	sealed := func(body string) func(*testing.T, place) {
		return func(t *testing.T, p place) {
			key, _, err := Open(p.file).readKey()
			check(t, err)
			write(t, p.file, body+sealOf(key, []byte(body))+end)
		}
	}
	mode := func(key bool, mode os.FileMode) func(*testing.T, place) {
		return func(t *testing.T, p place) {
			path := p.file
			if key {
				path = p.key
			}
			check(t, os.Chmod(path, mode))
		}
	}
	const (
		unix = 1 + iota // needs modes, links and pipes
		root            // needs to give a file to another user
	)
	tests := []struct {
		name  string
		needs int
		spoil func(*testing.T, place)
		want  string // in the reason; empty: loads
	}{
		{"whole", 0, func(*testing.T, place) {}, ""},
		{"copied back", 0, func(t *testing.T, p place) {
			write(t, p.file+"x", read(t, p.file))
			check(t, os.Rename(p.file+"x", p.file))
		}, ""},
		{"readable by others", unix, mode(false, 0o644), ""},

		{"symlink", unix, func(t *testing.T, p place) {
			check(t, os.Rename(p.file, p.file+".real"))
			check(t, os.Symlink(p.file+".real", p.file))
		}, "symbolic link"},
		{"symlink to nothing", unix, func(t *testing.T, p place) {
			check(t, os.Remove(p.file))
			check(t, os.Symlink(p.file+".none", p.file))
		}, "symbolic link"},
		{"world-writable", unix, mode(false, 0o602), "other users may write"},
		{"group-writable", unix, mode(false, 0o660), "other users may write"},
		{"another user's", root, func(t *testing.T, p place) { check(t, os.Chown(p.file, 12345, -1)) }, "another user"},
		{"folder", 0, func(t *testing.T, p place) { check(t, os.Remove(p.file)); check(t, os.Mkdir(p.file, 0o700)) }, "not a regular file"},
		{"pipe", unix, func(t *testing.T, p place) { check(t, os.Remove(p.file)); check(t, mkfifo(p.file)) }, "not a regular file"},
		{"huge", 0, func(t *testing.T, p place) { check(t, os.Truncate(p.file, maxFile+1)) }, "larger"},
		{"its folder is open to all", unix, func(t *testing.T, p place) { check(t, os.Chmod(p.dir, 0o777)) }, "may write to this folder"},
		{"its folder is open to all, and sticky", unix, func(t *testing.T, p place) { check(t, os.Chmod(p.dir, 0o777|os.ModeSticky)) }, "may write to this folder"},
		{"its folder is open to a group", root, func(t *testing.T, p place) {
			check(t, os.Chown(p.dir, -1, 12345))
			check(t, os.Chmod(p.dir, 0o770))
		}, "may write to this folder"},
		{"its folder is another user's", root, func(t *testing.T, p place) { check(t, os.Chown(p.dir, 12345, -1)) }, "another user"},

		{"empty", 0, func(t *testing.T, p place) { write(t, p.file, "") }, "empty"},
		{"truncated", 0, func(t *testing.T, p place) { data := read(t, p.file); write(t, p.file, data[:len(data)/2]) }, "cut off"},
		{"truncated by one byte", 0, func(t *testing.T, p place) { data := read(t, p.file); write(t, p.file, data[:len(data)-1]) }, "seal"},
		{"only a seal", 0, func(t *testing.T, p place) {
			data := read(t, p.file)
			write(t, p.file, data[len(data)-sealSize-len(end):])
		}, "cut off"},
		{"zeros", 0, func(t *testing.T, p place) { write(t, p.file, string(make([]byte, len(read(t, p.file))))) }, "cut off"},
		{"a byte more", 0, func(t *testing.T, p place) { write(t, p.file, read(t, p.file)+"\n") }, "seal does not fit"},
		{"an object more", 0, func(t *testing.T, p place) { write(t, p.file, read(t, p.file)+"{}") }, "cut off or was not written"},
		{"edited", 0, edit(`"tool":"hello"`, `"tool":"other"`), "seal does not fit"},
		{"edited, no meaning changed", 0, edit(`{"id"`, `{ "id"`), "seal does not fit"},
		{"a digest edited", 0, edit(`"digest":"d-a"`, `"digest":"d-b"`), "seal does not fit"},
		{"a grant dropped", 0, func(t *testing.T, p place) {
			lines := strings.SplitAfter(read(t, p.file), "\n")
			write(t, p.file, strings.Join(slices.Delete(lines, 1, 2), ""))
		}, "seal does not fit"},
		{"the seal edited", 0, func(t *testing.T, p place) {
			data := []byte(read(t, p.file))
			data[len(data)-len(end)-1] ^= 1
			write(t, p.file, string(data))
		}, "seal"},
		{"the seal in capitals", 0, func(t *testing.T, p place) {
			data := read(t, p.file)
			cut := len(data) - sealSize - len(end)
			write(t, p.file, data[:cut]+strings.ToUpper(data[cut:]))
		}, "seal does not fit"},
		{"no seal", 0, func(t *testing.T, p place) { write(t, p.file, `{"version":1,"grants":[]}`) }, "seal"},
		{"an empty seal", 0, func(t *testing.T, p place) { write(t, p.file, head+foot+end) }, "seal does not fit"},
		{"version", 0, edit(`"version":1`, `"version":2`), "version is 2, and this program knows 1"},
		{"null", 0, func(t *testing.T, p place) { write(t, p.file, "null") }, "version is 0"},

		// These have a valid seal.
		{"unknown member", 0, sealed(`{"version":1,"allow":"all","seal":"`), "unknown field"},
		{"unknown member of a grant", 0, sealed(head + `{"id":"a","digest":"d","kind":"run","allow":"all"}` + foot), "unknown field"},
		{"ids twice", 0, sealed(head + `{"id":"a","digest":"d","kind":"run"},{"id":"a","digest":"e","kind":"run"}` + foot), `the id "a" occurs twice`},
		{"no id", 0, sealed(head + `{"digest":"d","kind":"run"}` + foot), "has no id"},
		{"no digest", 0, sealed(head + `{"id":"a","kind":"run"}` + foot), "has no digest"},
		{"no kind", 0, sealed(head + `{"id":"a","digest":"d"}` + foot), "has no kind"},
		{"newer", 0, sealed(`{"version":2,"grants":[],"profiles":["x"],"seal":"`), "a newer packs-mcp wrote it, so update this one"},
		{"older than any", 0, sealed(`{"version":0,"grants":[],"seal":"`), "version is 0, and this program knows 1"},
		{"sealed version", 0, sealed(`{"version":2,"grants":[],"seal":"`), "version is 2"},
		{"sealed and not JSON", 0, sealed(head + "x" + foot), "not what was written"},

		{"no key", 0, func(t *testing.T, p place) { check(t, os.Remove(p.key)) }, "is missing"},
		{"another key", 0, func(t *testing.T, p place) { write(t, p.key, strings.Repeat("0", 2*keySize)+"\n") }, "seal does not fit"},
		{"empty key", 0, func(t *testing.T, p place) { write(t, p.key, "") }, "not 32 bytes"},
		{"short key", 0, func(t *testing.T, p place) { write(t, p.key, read(t, p.key)[2:]) }, "not 32 bytes"},
		{"long key", 0, func(t *testing.T, p place) { write(t, p.key, read(t, p.key)+"00") }, "larger"},
		{"world-writable key", unix, mode(true, 0o602), "other users may write"},
		{"world-readable key", unix, mode(true, 0o604), "other users may read"},
		{"group-readable key", unix, mode(true, 0o640), "other users may read"},
		{"symlinked key", unix, func(t *testing.T, p place) {
			check(t, os.Rename(p.key, p.key+".real"))
			check(t, os.Symlink(p.key+".real", p.key))
		}, "symbolic link"},
		{"another user's key", root, func(t *testing.T, p place) { check(t, os.Chown(p.key, 12345, -1)) }, "another user"},
		{"a pipe as key", unix, func(t *testing.T, p place) { check(t, os.Remove(p.key)); check(t, mkfifo(p.key)) }, "not a regular file"},
	}
	good := filepath.Join(folder(t), "grants.json")
	if err := add(Open(good), grant("a"), grant("b")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.needs >= unix && runtime.GOOS == "windows" {
				t.Skip("windows: it has no modes, links and pipes of Unix")
			}
			if tt.needs == root && os.Geteuid() != 0 {
				t.Skip("root: only it can give a file away")
			}
			p := place{dir: folder(t)}
			p.file, p.key = filepath.Join(p.dir, "grants.json"), filepath.Join(p.dir, "grants.key")
			for name := range look(t, filepath.Dir(good)) {
				write(t, filepath.Join(p.dir, name), read(t, filepath.Join(filepath.Dir(good), name)))
			}
			s := Open(p.file)
			later(s)
			if got := ids(t, s); len(got) != 2 {
				t.Fatalf("Load = %q, want a and b", got)
			}
			tt.spoil(t, p)
			before := look(t, p.dir)

			// With a store that has read the file before, and with one that has not.
			for _, s := range []*Store{s, Open(p.file)} {
				got, err := s.Load()
				if tt.want == "" {
					if err != nil || len(got) != 2 {
						t.Errorf("Load = %v, %v, want a and b", got, err)
					}
					continue
				}
				refused, ok := errors.AsType[*private.RefusedError](err)
				if !ok || !strings.Contains(refused.Reason, tt.want) || len(got) > 0 {
					t.Errorf("Load = %v, %v, want refused: %q", got, err, tt.want)
				}
				if err := add(s, grant("c")); !errors.As(err, new(*private.RefusedError)) {
					t.Errorf("Update = %v, want refused", err)
				}
			}
			if diff := cmp.Diff(before, look(t, p.dir)); diff != "" {
				t.Errorf("something was changed (-before +after):\n%s", diff)
			}
			if tt.want == "" {
				return
			}

			// If a person starts over, nothing is lost. They have to repair a folder
			// themselves.
			moved, err := s.SetAside(since)
			if strings.Contains(tt.name, "its folder") {
				if !errors.As(err, new(*private.RefusedError)) || len(moved) > 0 {
					t.Errorf("SetAside = %q, %v, want refused", moved, err)
				}
				return
			}
			if err != nil || len(moved) == 0 || moved[0] != p.file+".refused-20250102T030405Z" {
				t.Fatalf("SetAside = %q, %v, want the file moved", moved, err)
			}
			for name, was := range before {
				if name == "grants.json" || name == "grants.key" {
					name += ".refused-20250102T030405Z"
				}
				if now := look(t, p.dir)[name]; now != was {
					t.Errorf("%s is %s now, and was %s", name, now, was)
				}
			}
			if got := ids(t, Open(p.file)); len(got) > 0 {
				t.Errorf("Load after a new start = %q, want none", got)
			}
		})
	}
}

// look returns what is in a folder, with contents and modes.
func look(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		what := info.Mode().String()
		if info.Mode().IsRegular() && info.Size() < 1<<20 {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			what += " " + string(data)
		}
		found[e.Name()] = what
	}
	return found
}

func TestSetAside(t *testing.T) {
	path := filepath.Join(folder(t), "grants.json")
	s := Open(path)
	if moved, err := s.SetAside(since); err != nil || len(moved) > 0 {
		t.Errorf("SetAside of nothing = %q, %v", moved, err)
	}
	mustAdd(t, s, "a")
	if moved, err := s.SetAside(since); err != nil || len(moved) > 0 || len(ids(t, s)) != 1 {
		t.Errorf("SetAside of a good file = %q, %v, want nothing done", moved, err)
	}
	// Twice within a second: the first file is not lost.
	seen := map[string]bool{}
	for i := range 3 {
		if err := os.WriteFile(path, fmt.Append(nil, i), 0o600); err != nil {
			t.Fatal(err)
		}
		moved, err := s.SetAside(since)
		if err != nil || len(moved) == 0 || seen[moved[0]] {
			t.Fatalf("SetAside = %q, %v, want a new name", moved, err)
		}
		seen[moved[0]] = true
		if data, err := os.ReadFile(moved[0]); err != nil || string(data) != fmt.Sprint(i) {
			t.Errorf("%s holds %q, %v, want %d", moved[0], data, err, i)
		}
	}
	mustAdd(t, s, "new")
	if got := ids(t, Open(path)); !slices.Equal(got, []string{"new"}) {
		t.Errorf("Load after a new start = %q, want only the new grant", got)
	}
}

// When the file is read again, and when not.
func TestLoadNoticesChanges(t *testing.T) {
	path := filepath.Join(folder(t), "grants.json")
	s := Open(path)
	mustAdd(t, s, "a")
	later(s)
	first := ids(t, s)
	s.last.grants[0].Pack = "read before"
	if got, err := s.Load(); err != nil || got[0].Pack != "read before" {
		t.Errorf("Load of a file that did not change = %v, %v, want what was read before", got, err)
	}

	// Changed in place, with the same size and the old time: still noticed.
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(data), "d-a", "d-b", 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load(); err == nil {
		t.Errorf("Load of an edited file = %q, want refused", idsOf(got))
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, s); !slices.Equal(got, first) {
		t.Errorf("Load of the file as it was = %q, want %q", got, first)
	}
	for _, p := range []string{path, s.key.Path} {
		if err := os.Rename(p, p+".x"); err != nil {
			t.Fatal(err)
		}
	}
	if got := ids(t, s); len(got) > 0 {
		t.Errorf("Load without the file = %q, want none", got)
	}
}

func TestLimits(t *testing.T) {
	path := filepath.Join(folder(t), "grants.json")
	s := Open(path)
	small := func(i int) grants.Grant {
		return grants.Grant{ID: fmt.Sprint(i), Digest: "d", Kind: call.KindOpen, Since: since}
	}
	void := func(i, day int) grants.Grant {
		g := small(i)
		g.Void = &grants.Void{At: since.AddDate(0, 0, day), Changes: []string{"x"}}
		return g
	}
	all := []grants.Grant{void(0, 3), void(1, 1), void(2, 2)}
	for i := len(all); i < maxGrants+2; i++ {
		all = append(all, small(i))
	}
	if err := add(s, all...); err != nil {
		t.Fatalf("Update with void grants to forget = %v", err)
	}
	want := append([]string{"0"}, idsOf(all[3:])...)
	if diff := cmp.Diff(want, ids(t, s)); diff != "" {
		t.Errorf("those that have been void for longest are not forgotten (-want +got):\n%s", diff)
	}
	if err := add(s, small(9998), small(9999)); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "revoke") {
		t.Errorf("Update with one too many = %v, want ErrFull and what to do", err)
	}
	if got := ids(t, s); !slices.Equal(got, want) {
		t.Errorf("Load = %d grants, want what was there", len(got))
	}

	first, second := void(1, 0), small(2)
	first.Covers, second.Covers = strings.Repeat("x", maxFile/2), strings.Repeat("x", maxFile/2)
	data, _, err := encode(make([]byte, keySize), []grants.Grant{first, second}, nil, 1)
	if err != nil || len(data) > maxFile || strings.Contains(string(data), `"void"`) {
		t.Errorf("encode of too many bytes = %d bytes, %v, want the void grant forgotten", len(data), err)
	}
	first.Void = nil
	if _, _, err := encode(make([]byte, keySize), []grants.Grant{first, second}, nil, 1); !errors.Is(err, ErrFull) {
		t.Errorf("encode of too many bytes = %v, want ErrFull", err)
	}
}

// TestNobodyTakesTheRoomOfOthers: no person takes room from others, however much they keep. A person with
// more than their share loses nothing, and can still revoke.
func TestNobodyTakesTheRoomOfOthers(t *testing.T) {
	of := func(person string, n int) grants.Grant {
		return grants.Grant{ID: fmt.Sprint(person, n), Digest: "d", Kind: call.KindOpen, Since: since, Person: person}
	}
	void := func(person string, n int) grants.Grant {
		g := of(person, n)
		g.Void = &grants.Void{At: since.AddDate(0, 0, n), Changes: []string{"x"}}
		return g
	}
	large := func(person string, n int) grants.Grant {
		g := of(person, n)
		g.Covers = strings.Repeat("x", maxFile/8)
		return g
	}
	many := func(of func(string, int) grants.Grant, person string, n int) (all []grants.Grant) {
		for i := range n {
			all = append(all, of(person, i))
		}
		return all
	}
	for name, c := range map[string]struct {
		had    []grants.Grant // kept while there was one person
		people int
		more   []grants.Grant
		full   bool
		gone   []string
	}{
		"a part of the count":           {many(of, "ada", maxGrants/2-1), 2, []grants.Grant{of("ada", 9999)}, false, nil},
		"more than a part of the count": {many(of, "ada", maxGrants/2), 2, []grants.Grant{of("ada", 9999)}, true, nil},
		"another person's":              {many(of, "ada", maxGrants/2), 2, []grants.Grant{of("grace", 9999)}, false, nil},
		"a part of the size":            {many(large, "ada", 2), 2, []grants.Grant{large("ada", 9999)}, false, nil},
		"more than a part of the size":  {many(large, "ada", 3), 2, []grants.Grant{large("ada", 9999)}, true, nil},
		"another person's size":         {many(large, "ada", 3), 2, []grants.Grant{large("grace", 9999)}, false, nil},
		"one's own void make room": {append(many(of, "ada", maxGrants/2-2), void("ada", 9002), void("ada", 9001), void("grace", 1)), 2,
			[]grants.Grant{of("ada", 9999)}, false, []string{"ada9001"}},
		"from when they were fewer":         {many(of, "ada", maxGrants/2+9), 2, []grants.Grant{of("grace", 1)}, false, nil},
		"from when they were fewer, more":   {many(of, "ada", maxGrants/2+9), 2, []grants.Grant{of("ada", 9999)}, true, nil},
		"more people than announced":        {append(many(of, "ada", maxGrants/2), many(of, "grace", maxGrants/2)...), 2, []grants.Grant{of("eve", 1)}, true, nil},
		"nobody to divide it with":          {many(of, "ada", maxGrants-1), 0, []grants.Grant{of("ada", 9999)}, false, nil},
		"more people than there are grants": {nil, 10 * maxGrants, []grants.Grant{of("ada", 1)}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := Open(filepath.Join(folder(t), "grants.json"))
			if len(c.had) > 0 {
				if err := add(s, c.had...); err != nil {
					t.Fatal(err)
				}
			}
			want := idsOf(c.had)
			err := add(s.Among(c.people), c.more...)
			if !c.full {
				want = append(want, idsOf(c.more)...)
			}
			if errors.Is(err, ErrFull) != c.full || err != nil && (!c.full || !strings.Contains(err.Error(), "revoke")) {
				t.Errorf("Update = %v, want ErrFull and what to do: %v", err, c.full)
			}
			want = slices.DeleteFunc(want, func(id string) bool { return slices.Contains(c.gone, id) })
			if diff := cmp.Diff(want, ids(t, s)); diff != "" {
				t.Errorf("the grants differ (-want +got):\n%s", diff)
			}
			// Revoking works even if somebody has too many.
			if err := s.Among(c.people).Update(func(all []grants.Grant) ([]grants.Grant, error) { return all[:len(all)-1], nil }); err != nil {
				t.Errorf("Update(one less) = %v", err)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{10, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := Open(filepath.Join(b.TempDir(), "grants.json"))
			var all []grants.Grant
			for i := range n {
				all = append(all, grant(fmt.Sprint(i)))
			}
			if err := add(s, all...); err != nil {
				b.Fatal(err)
			}
			later(s)
			for b.Loop() {
				if got, err := s.Load(); err != nil || len(got) != n {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

// Whatever a killed process left behind, the next one can continue.
func TestCrashPoints(t *testing.T) {
	for _, tt := range []struct {
		name string
		left map[string]string // :: name → content; KEY is a good key
		keep bool              // a complete file and its key are there too
	}{
		{"in the key", map[string]string{".grants.key.new": "0123"}, false},
		{"after the key", map[string]string{"grants.key": "KEY"}, false},
		{"in the first file", map[string]string{"grants.key": "KEY", ".grants.json.new": head}, false},
		{"in the next file", map[string]string{".grants.json.new": head}, true},
	} {
		dir := folder(t)
		s := Open(filepath.Join(dir, "grants.json"))
		var want []string
		if tt.keep {
			mustAdd(t, s, "a")
			want = []string{"a"}
		}
		for name, content := range tt.left {
			content = strings.ReplaceAll(content, "KEY", strings.Repeat("5a", keySize)+"\n")
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := ids(t, s); !slices.Equal(got, want) {
			t.Errorf("killed %s: Load = %q, want %q", tt.name, got, want)
		}
		mustAdd(t, s, "b")
		if got := ids(t, Open(s.Path())); !slices.Equal(got, append(want, "b")) {
			t.Errorf("killed %s: Load after an Update = %q, want %q and b", tt.name, got, want)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
			t.Errorf("killed %s: %v in the folder, want nothing left over", tt.name, entries)
		}
	}
}
