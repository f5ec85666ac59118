package private

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A folder that others can change is not used.
func TestFolderRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows: modes and links of Unix")
	}
	for _, tt := range []struct {
		name string
		make func(dir string) error
		want string
	}{
		{"link", func(dir string) error { return os.Symlink(t.TempDir(), dir) }, "is a symbolic link"},
		{"link to nothing", func(dir string) error { return os.Symlink(dir+"-gone", dir) }, "is a symbolic link"},
		{"file", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "is not a folder"},
		{"below a file", func(dir string) error { return os.WriteFile(filepath.Dir(dir), nil, 0o600) }, "cannot be"},
		{"open to the group", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o750)) }, "is open to other users"},
		{"open to all", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }, "is open to other users"},
		{"another user's", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, os.Getuid()+1, -1))
		}, "belongs to another user"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state", "things")
			if tt.name != "below a file" {
				if err := os.Mkdir(filepath.Dir(dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.make(dir); err != nil {
				t.Skip(err)
			}
			f := &Folder{Path: dir, What: "things"}
			for name, open := range map[string]func() (*os.Root, error){"Open": f.Open, "OpenExisting": f.OpenExisting} {
				root, err := open()
				if fe, ok := errors.AsType[*FolderError](err); !ok || fe.Path != dir || !strings.Contains(fe.Problem, tt.want) || root != nil {
					t.Errorf("%s = %v, want a *FolderError: the folder %s", name, err, tt.want)
				}
			}
		})
	}
	if _, err := (&Folder{Path: "relative"}).Open(); !errors.As(err, new(*FolderError)) {
		t.Errorf("Open of a relative path = %v, want a *FolderError", err)
	}
}

func TestFolderOpen(t *testing.T) {
	f := &Folder{Path: filepath.Join(t.TempDir(), "state", "things"), What: "things"}
	if root, err := f.OpenExisting(); root != nil || err != nil {
		t.Fatalf("OpenExisting of what is not there = %v, %v, want neither", root, err)
	}
	root, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if info, err := os.Stat(f.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v, want 0700", info.Mode(), err)
	}
	if real, err := filepath.EvalSymlinks(f.Path); err != nil || root.Name() != real {
		t.Errorf("Name = %q, want %q (%v)", root.Name(), real, err)
	}
}

// Several servers run one at a time; each waits until its context ends.
func TestFolderAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "things")
	one, other := &Folder{Path: dir, What: "things"}, &Folder{Path: dir, What: "things"}
	root, err := one.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = one.Alone(t.Context(), root, func() error {
		return other.Alone(ctx, root, func() error {
			t.Error("two are alone")
			return nil
		})
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Alone beside another = %v, want its context's", err)
	}
	called := false
	if err := other.Alone(t.Context(), root, func() error { called = true; return nil }); err != nil || !called {
		t.Errorf("Alone after another = %v, called: %v", err, called)
	}
	if runtime.GOOS == "windows" {
		return
	}
	// A link in place of the lock is not followed.
	lock, elsewhere := filepath.Join(dir, folderLock), filepath.Join(t.TempDir(), "made")
	if err := errors.Join(os.Remove(lock), os.Symlink(elsewhere, lock)); err != nil {
		t.Fatal(err)
	}
	err = one.Alone(t.Context(), root, func() error { t.Error("called under a lock elsewhere"); return nil })
	if _, there := os.Lstat(elsewhere); !errors.As(err, new(*FolderError)) || there == nil {
		t.Errorf("Alone with a link as lock = %v, and the link's target is made: %v", err, there == nil)
	}
}
