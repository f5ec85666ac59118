package packs

import (
	"os"
	"path/filepath"
	"testing"
)

// indexFiles is how many files an index has.
func indexFiles(t *testing.T, x Index) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(x.Dir, "packs-*.index"))
	must(t, err)
	return len(files)
}

// What was saved is not saved again, until something was read that differs.
func TestSaveIndexWritesWhatIsNew(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	l := library(t, dir, x)
	saves := func() bool {
		t.Helper()
		if err := os.RemoveAll(x.Dir); err != nil {
			t.Fatal(err)
		}
		save(t, l)
		return indexFiles(t, x) > 0
	}
	if !saves() {
		t.Error("the first SaveIndex wrote nothing")
	}
	if saves() {
		t.Error("SaveIndex wrote again what it had written")
	}
	must(t, l.Rescan(t.Context()))
	if saves() {
		t.Error("SaveIndex wrote again after a scan that read nothing")
	}
	write(t, filepath.Join(dir, "a", "SKILL.md"), "---\nname: a\ndescription: new\n---\n")
	must(t, l.Rescan(t.Context()))
	if !saves() {
		t.Error("SaveIndex wrote nothing after a change")
	}
	must(t, l.Rescan(t.Context()))
	if saves() {
		t.Error("SaveIndex wrote again after the change")
	}
}

// When it could not be saved, it is not tried again before something else was read.
func TestSaveIndexThatFails(t *testing.T) {
	dir := writeTree(t, someTree)
	needStamps(t, dir)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	l := library(t, dir, Index{Dir: filepath.Join(file, "index"), Version: "1"})
	if err := l.SaveIndex(); err == nil {
		t.Error("SaveIndex into a file = nil, want an error")
	}
	if err := l.SaveIndex(); err != nil {
		t.Errorf("SaveIndex with nothing new = %v, want that it does nothing", err)
	}
}
