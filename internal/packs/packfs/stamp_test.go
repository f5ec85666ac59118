package packfs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
)

func lstat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestStamp(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	info := lstat(t, file)
	first := StampOf(info)
	if first.IsZero() {
		t.Skip("this system does not say what a stamp is made of")
	}
	if first.Settled(time.Now()) {
		t.Error("a file that was written just now is settled")
	}
	if !first.Settled(time.Now().Add(settled)) {
		t.Error("a file that was written two seconds ago is not settled")
	}
	if first.Settled(info.ModTime().Add(-time.Hour)) {
		t.Error("a file of the future is settled")
	}
	if (Stamp{}).Settled(time.Now()) {
		t.Error("nothing is settled")
	}

	// The same size and modification time.
	for step := time.Now(); time.Since(step) < 20*time.Millisecond; { // beyond one tick of the clock
		write("two")
	}
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	second := StampOf(lstat(t, file))
	if first == second {
		t.Error("another text of the same size and time has the same stamp")
	}

	raw, err := second.AppendBinary([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	r := packed.From(string(raw[1:]) + "rest")
	if got := ReadStamp(&r); got != second || r.Rest() != "rest" || r.IsBad() {
		t.Errorf("ReadStamp = %v, and %q is left, want %v", got, r.Rest(), second)
	}
	r = packed.From(string(raw[1 : len(raw)-1]))
	if got := ReadStamp(&r); !got.IsZero() || !r.IsBad() {
		t.Errorf("ReadStamp of too little = %v", got)
	}
	if !second.Which().Same(WhichOf(lstat(t, file))) || second.Which().Same(WhichOf(lstat(t, dir))) || (Which{}).Same(Which{}) {
		t.Error("Which tells what is the same otherwise")
	}
}

// Names agrees with the standard library's listing, and has the same types.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	for i := range 700 { // enough for several system calls
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("a file with a rather long name, ä, %d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Logf("symlinks: %v", err)
	}
	describe := func(entries []fs.DirEntry) (lines []string) {
		for _, e := range entries {
			lines = append(lines, fmt.Sprintf("%v %s %v", e.Type(), e.Name(), e.IsDir()))
		}
		slices.Sort(lines)
		return lines
	}
	want, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got, truncated, err := d.Names(len(want))
	if err != nil || truncated {
		t.Fatalf("Names = %v, %v", truncated, err)
	}
	if diff := cmp.Diff(describe(want), describe(got)); diff != "" {
		t.Errorf("Names (-want +got):\n%s", diff)
	}
	if !slices.IsSortedFunc(got, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }) {
		t.Error("Names are not sorted")
	}
	if got, truncated, _ := d.Names(10); len(got) != 10 || !truncated {
		t.Errorf("Names(10) = %d, %v, want 10 and more", len(got), truncated)
	}
	dirs, truncated, err := d.NamesOf(len(want), func(_ string, mode fs.FileMode) bool { return mode.IsDir() })
	if err != nil || truncated || len(dirs) != 1 || dirs[0].Name() != "sub" {
		t.Errorf("NamesOf directories = %v, %v, %v", dirs, truncated, err)
	}
}

func TestLocal(t *testing.T) {
	if Local(filepath.Join(t.TempDir(), "nowhere")) {
		t.Error("what is not there is local")
	}
	if _, err := os.Stat("/proc/self"); err == nil && Local("/proc/self") {
		t.Error("/proc is local")
	}
}
