package memo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Data for queries is read by the same version for the same roots, and whole or not at
// all.
func TestWords(t *testing.T) {
	x := Index{Dir: filepath.Join(t.TempDir(), "index"), Version: "1"}
	roots := []string{"/a", "/b"}
	if _, err := x.LoadWords(roots); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("LoadWords of nothing: %v, want %v", err, fs.ErrNotExist)
	}
	const data = "what queries need"
	for _, d := range []string{"something else", data} {
		if done, err := x.SaveWords(roots, []byte(d)); !done || err != nil {
			t.Fatalf("SaveWords = %v, %v", done, err)
		}
		if got, err := x.LoadWords(roots); got != d || err != nil {
			t.Errorf("LoadWords = %q, %v, want %q", got, err, d)
		}
	}
	for name, load := range map[string]func() (string, error){
		"other roots":     func() (string, error) { return x.LoadWords([]string{"/b", "/a"}) },
		"fewer roots":     func() (string, error) { return x.LoadWords([]string{"/a/b"}) },
		"another version": func() (string, error) { return Index{Dir: x.Dir, Version: "2"}.LoadWords(roots) },
	} {
		if got, err := load(); err == nil {
			t.Errorf("%s: LoadWords = %q, want an error", name, got)
		}
	}

	file, _ := x.wordsFile(roots)
	good, err := os.ReadFile(file.Path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x20
		for what, b := range map[string][]byte{"the beginning": good[:i], "a changed byte": bad} {
			if err := os.WriteFile(file.Path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := x.LoadWords(roots); !errors.Is(err, errIndex) {
				t.Fatalf("%s at %d: LoadWords = %q, %v, want %v", what, i, got, err, errIndex)
			}
		}
	}
}

// The file goes the way of the others: unused, it is removed, and used, it is kept.
func TestWordsThatNobodyUses(t *testing.T) {
	x := Index{Dir: t.TempDir(), Version: "1"}
	roots := []string{"/a"}
	old := time.Now().Add(-indexLife - time.Hour)
	for _, used := range []bool{true, false} {
		if _, err := x.SaveWords(roots, []byte("data")); err != nil {
			t.Fatal(err)
		}
		file, _ := x.wordsFile(roots)
		if err := os.Chtimes(file.Path, old, old); err != nil {
			t.Fatal(err)
		}
		if used {
			if _, err := x.LoadWords(roots); err != nil {
				t.Fatal(err)
			}
		}
		x.Sweep(time.Now())
		if _, err := os.Stat(file.Path); (err == nil) != used {
			t.Errorf("used: %v; after Sweep: %v", used, err)
		}
	}
}

// Data that another user could have written is not read.
func TestWordsOfOthers(t *testing.T) {
	x := Index{Dir: t.TempDir(), Version: "1"}
	roots := []string{"/a"}
	if _, err := x.SaveWords(roots, []byte("data")); err != nil {
		t.Fatal(err)
	}
	file, _ := x.wordsFile(roots)
	if err := os.Chmod(file.Path, 0o622); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file.Path); err != nil || info.Mode().Perm() != 0o622 {
		t.Skip("permissions: this system has none")
	}
	if got, err := x.LoadWords(roots); err == nil || !strings.Contains(err.Error(), "index for queries") {
		t.Errorf("LoadWords = %q, %v, want a refusal", got, err)
	}
}
