package attach

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var since = time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "attached.json")
	s := Open(path)
	if set, err := s.Load(); err != nil || len(set.IDs()) > 0 {
		t.Fatalf("Load = %v, %v, want an empty set", set, err)
	}
	dir := t.TempDir()
	steps := []struct {
		change   func(*Set)
		ids      []string
		detached bool
	}{
		{func(s *Set) { s.Attach("b", Entry{Dir: dir, Trust: "user", Since: since}) }, []string{"b"}, false},
		{func(s *Set) { s.Attach("a/x", Entry{Dir: dir, Since: since}) }, []string{"a/x", "b"}, false},
		{func(s *Set) { s.Detach("b", since) }, []string{"a/x"}, true},
		{func(s *Set) { s.Attach("b", Entry{Dir: dir}) }, []string{"a/x", "b"}, false},
	}
	for i, step := range steps {
		if err := s.Update(func(s *Set) error { step.change(s); return nil }); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		set, err := Open(path).Load()
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if diff := cmp.Diff(step.ids, set.IDs()); diff != "" || set.IsDetached("b") != step.detached {
			t.Errorf("step %d: (-want +got):\n%s", i, diff)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sentinel := errors.New("no")
	if err := s.Update(func(s *Set) error { s.Detach("b", since); return sentinel }); !errors.Is(err, sentinel) {
		t.Errorf("Update = %v, want %v", err, sentinel)
	}
	if err := s.Update(func(s *Set) error { s.Attach("c", Entry{Dir: "relative"}); return nil }); err == nil {
		t.Error("Update with a relative directory = nil, want an error")
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file changed: %s, %v", after, err)
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
		}
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 2 { // the file and its lock
		t.Errorf("%v in the state directory, want nothing left over", files)
	}
}

func TestStoreConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "attached.json")
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			err := Open(path).Update(func(s *Set) error { s.Attach(strconv.Itoa(i), Entry{Dir: dir}); return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if set, err := Open(path).Load(); err != nil || len(set.Attached) != 16 {
		t.Errorf("Load = %v, %v, want 16 packs", set, err)
	}
}

// AP-10 of the hostile cases.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	valid := `{"version": 1, "attached": {"a": {"dir": ` + strconv.Quote(abs) + `, "since": "2025-01-02T03:04:05Z"}}}`
	write := func(data string, mode os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name string
		unix bool
		make func(*testing.T, string)
		want string // in the reason; empty: loads
	}{
		{"valid", false, write(valid, 0o600), ""},
		{"symlink", true, func(t *testing.T, path string) {
			write(valid, 0o600)(t, path+".real")
			if err := os.Symlink(path+".real", path); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		{"world-writable", true, write(valid, 0o602), "other users"},
		{"group-writable", true, write(valid, 0o660), "other users"},
		{"directory", false, func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		{"empty", false, write("", 0o600), "not what was written"},
		{"truncated", false, write(valid[:len(valid)-5], 0o600), "not what was written"},
		{"more", false, write(valid+"{}", 0o600), "more follows"},
		{"unknown key", false, write(`{"version": 1, "allow": "all"}`, 0o600), "not what was written"},
		{"newer", false, write(`{"version": 2, "attached": {}, "profiles": ["x"]}`, 0o600), "a newer packs-mcp wrote it, so update this one"},
		{"version", false, write(`{"version": 2}`, 0o600), "version is 2"},
		{"null", false, write(`null`, 0o600), "version is 0"},
		{"relative directory", false, write(`{"version": 1, "attached": {"a": {"dir": "x", "since": "2025-01-02T03:04:05Z"}}}`, 0o600), "no absolute directory"},
		{"trust", false, write(strings.Replace(valid, `"since"`, `"trust": "bundled", "since"`, 1), 0o600), "unknown trust"},
		{"huge", false, write(valid+strings.Repeat(" ", maxFile), 0o600), "larger"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.unix && runtime.GOOS == "windows" {
				t.Skip("modes and links of Unix")
			}
			path := filepath.Join(t.TempDir(), "attached.json")
			tt.make(t, path)
			set, err := Open(path).Load()
			if tt.want == "" {
				if err != nil || len(set.Attached) != 1 {
					t.Errorf("Load = %v, %v, want one pack", set, err)
				}
				return
			}
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || !strings.Contains(refused.Reason, tt.want) || len(set.Attached) > 0 {
				t.Errorf("Load = %v, %v, want refused: %q", set, err, tt.want)
			}
			if err := Open(path).Update(func(*Set) error { return nil }); !errors.As(err, new(*RefusedError)) {
				t.Errorf("Update = %v, want refused", err)
			}
		})
	}
}
