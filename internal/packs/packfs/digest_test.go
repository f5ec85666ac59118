package packfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func hexSum(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func digest(t *testing.T, dir string, cache *DigestCache) *Tree {
	t.Helper()
	tree, err := open(t, dir).Digest(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestDigest(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no executable bit")
	}
	dir := tree(t, map[string]string{"SKILL.md": "s", "scripts/run.sh": "r", "a b": ""})
	if err := os.Chmod(filepath.Join(dir, "scripts", "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	symlink(t, "../outside", filepath.Join(dir, "scripts", "link"))
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	lines := "SKILL.md\x000\x00" + hexSum("s") + "\n" +
		"a b\x000\x00" + hexSum("") + "\n" +
		"scripts/link\x00link\x00../outside\n" +
		"scripts/run.sh\x001\x00" + hexSum("r") + "\n"
	got := digest(t, dir, nil)
	want := &Tree{
		Digest: "sha256:" + hexSum(lines), Bytes: 2,
		Files: []TreeFile{
			{"SKILL.md", 1, "sha256:" + hexSum("s"), false}, {"a b", 0, "sha256:" + hexSum(""), false}, {"scripts/run.sh", 1, "sha256:" + hexSum("r"), true},
		},
		links: map[string]string{"scripts/link": "../outside"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Tree{})); diff != "" {
		t.Errorf("Digest (-want +got):\n%s", diff)
	}
}

// A small file is kept as it was digested, even if the cache knows its digest.
func TestDigestKeeping(t *testing.T) {
	big := strings.Repeat("x", alwaysRead)
	dir := tree(t, map[string]string{"a/SKILL.md": "text", "a/b/SKILL.md": "deeper", "empty": "", "0": big})
	symlink(t, "SKILL.md", filepath.Join(dir, "a", "link"))
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"a/SKILL.md", "a/b/SKILL.md", "empty", "0"} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	later := func() time.Time { return time.Now().Add(time.Hour) }
	cache := &DigestCache{now: later}
	plain := digest(t, dir, cache)
	for _, c := range []struct {
		path string
		max  int64
		want string
		ok   bool
	}{
		{"a/SKILL.md", 4, "text", true},
		{"a/SKILL.md", 3, "", false},
		{"a/b/SKILL.md", 1 << 20, "deeper", true},
		{"empty", 0, "", true},
		{"0", 2 * alwaysRead, big, true},
		{"a/link", 1 << 20, "", false},
		{"a", 1 << 20, "", false},
		{"none", 1 << 20, "", false},
		{"", 1 << 20, "", false},
	} {
		got, err := open(t, dir).DigestKeeping(t.Context(), cache, c.path, c.max)
		if err != nil {
			t.Fatal(err)
		}
		if kept, ok := got.Kept(c.path); ok != c.ok || string(kept) != c.want {
			t.Errorf("%q of at most %d bytes: kept %d bytes, %v, want %d, %v", c.path, c.max, len(kept), ok, len(c.want), c.ok)
		}
		if _, ok := got.Kept("a/b"); ok {
			t.Errorf("%q: another path is kept", c.path)
		}
		if diff := cmp.Diff(plain, got.WithoutKept(), cmp.AllowUnexported(Tree{})); diff != "" {
			t.Errorf("%q (-Digest +DigestKeeping):\n%s", c.path, diff)
		}
	}
}

// Every change changes the digest, with and without a cache.
func TestDigestChanges(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "b/c": "2", "d": "3"})
	if runtime.GOOS != "windows" {
		symlink(t, "a", filepath.Join(dir, "l"))
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	old := time.Unix(1_700_000_000, 0)
	steps := []struct {
		name string
		do   func() error
	}{
		{"start", func() error { return nil }},
		{"one byte, same size and time", func() error {
			info, err := os.Stat(at("a"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(at("a"), []byte("x"), 0o644); err != nil {
				return err
			}
			return os.Chtimes(at("a"), time.Time{}, info.ModTime())
		}},
		{"new file", func() error { return os.WriteFile(at("n"), nil, 0o644) }},
		{"renamed", func() error { return os.Rename(at("n"), at("m")) }},
		{"removed", func() error { return os.Remove(at("m")) }},
		{"moved", func() error { return os.Rename(at("d"), at("b/d")) }},
		{"line break in a name", func() error { return os.Rename(at("a"), at("a\nb")) }},
		{"other link", func() error {
			if err := os.Remove(at("l")); err != nil {
				return err
			}
			return os.Symlink("b/c", at("l"))
		}},
		{"executable", func() error { return os.Chmod(at("b/c"), 0o755) }},
	}
	if runtime.GOOS == "windows" {
		steps = steps[:6]
	}
	cache := &DigestCache{now: func() time.Time { return time.Now().Add(time.Hour) }}
	seen := make(map[string]string)
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got := digest(t, dir, cache).Digest
		if other, ok := seen[got]; ok && step.name != "removed" {
			t.Errorf("%s: the digest of %q", step.name, other)
		}
		if plain := digest(t, dir, nil).Digest; plain != got {
			t.Errorf("%s: Digest with a cache = %s, without = %s", step.name, got, plain)
		}
		if seen[got] == "" {
			seen[got] = step.name
		}
	}
	if err := os.Chtimes(at("b/d"), old, old); err != nil {
		t.Fatal(err)
	}
	if got := digest(t, dir, cache).Digest; seen[got] == "" {
		t.Errorf("a file's time changed the digest")
	}
}

func create(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTreeFile(t *testing.T) {
	got := digest(t, tree(t, map[string]string{"a/b": "1", "a.txt": "2", "z": "3"}), nil)
	for _, want := range got.Files {
		if f, ok := got.File(want.Path); !ok || f != want {
			t.Errorf("File(%q) = %v, %v, want %v", want.Path, f, ok, want)
		}
	}
	for _, path := range []string{"", "a", "A/b", "zz"} {
		if f, ok := got.File(path); ok || f != (TreeFile{}) {
			t.Errorf("File(%q) = %v, %v, want none", path, f, ok)
		}
	}
}

// BenchmarkDigest digests a pack of 100 files, as happens before each call of a tool.
func BenchmarkDigest(b *testing.B) {
	dir := b.TempDir()
	for i := range 100 {
		name := filepath.Join(dir, fmt.Sprintf("d%d", i%10), fmt.Sprintf("f%d", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.Repeat([]byte("x"), 4<<10), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	d, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	cache := &DigestCache{now: func() time.Time { return time.Now().Add(time.Hour) }}
	for b.Loop() {
		if _, err := d.Digest(b.Context(), cache); err != nil {
			b.Fatal(err)
		}
	}
}

func TestDigestCache(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "b": "2"})
	for _, name := range []string{"large", "larger"} {
		if err := os.Truncate(create(t, filepath.Join(dir, name)), alwaysRead+1); err != nil {
			t.Fatal(err)
		}
	}
	cache := &DigestCache{now: func() time.Time { return time.Now().Add(time.Hour) }}
	want := digest(t, dir, cache)
	if runtime.GOOS == "windows" {
		t.Skip("files have no inode")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := digest(t, dir, cache); got.Digest != want.Digest {
				t.Errorf("Digest = %s, want %s", got.Digest, want.Digest)
			}
		})
	}
	wg.Wait()
	if want := 9*2 + 2; cache.reads != want {
		t.Errorf("%d files read, want %d: the small ones each time, the large ones once", cache.reads, want)
	}
	// The digest of a recently changed file is not remembered.
	fresh := &DigestCache{}
	digest(t, dir, fresh)
	if len(fresh.sums) != 0 {
		t.Errorf("%d digests of new files remembered, want none", len(fresh.sums))
	}
}

func TestDigestErrors(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1"})
	d := open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Digest(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Digest = %v, want %v", err, context.Canceled)
	}
	if runtime.GOOS == "windows" {
		return
	}
	symlink(t, "x\ny", filepath.Join(dir, "l"))
	if _, err := d.DigestWithin(t.Context(), nil, Bound{}); !errors.Is(err, ErrLineBreak) {
		t.Errorf("DigestWithin = %v, want %v", err, ErrLineBreak)
	}
	if err := os.Remove(filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	deep := dir
	for range maxTreeDepth + 1 {
		deep = filepath.Join(deep, "d")
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Digest(t.Context(), nil); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("Digest = %v, want a *TooLargeError", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	sparseFile(t, filepath.Join(dir, "sparse"), maxTreeBytes+1)
	if _, err := d.DigestWithin(t.Context(), nil, Bound{}); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("DigestWithin = %v, want a *TooLargeError", err)
	}
	// Each of two files fits but not both, and nothing says which one to leave out.
	d.LimitTree(5)
	for _, name := range []string{"four", "more"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("1234"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Digest(t.Context(), nil); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("Digest = %v, want a *TooLargeError", err)
	}
}

func TestDigestWithin(t *testing.T) {
	dir := tree(t, map[string]string{"a": "12345", "b/c": "67890"}) // three names, ten bytes
	for _, tt := range []struct {
		within Bound
		ok     bool
	}{
		{Bound{}, true},
		{Bound{Files: 3, Bytes: 10}, true},
		{Bound{Files: 2}, false},
		{Bound{Bytes: 9}, false},
		{Bound{Bytes: 4}, false},
	} {
		got, err := open(t, dir).DigestWithin(t.Context(), nil, tt.within)
		if tooLarge := errors.As(err, new(*TooLargeError)); tooLarge == tt.ok || (err == nil) != tt.ok {
			t.Errorf("DigestWithin(%+v) = %v, want it to fit: %v", tt.within, err, tt.ok)
		}
		if tt.ok && got.Digest != digest(t, dir, nil).Digest {
			t.Errorf("DigestWithin(%+v) has another digest than Digest", tt.within)
		}
	}
}
