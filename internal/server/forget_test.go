package server

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The tools of packs that are gone do not stay in memory.
func TestToolsOfGonePacksAreForgotten(t *testing.T) {
	w := newWorld(t, triage)
	w.initialize()
	const packs = 60
	each := func(do func(dir string)) {
		for i := range packs {
			do(fmt.Sprintf("gone%d", i))
		}
		w.refresh()
	}
	each(func(dir string) {
		w.put(dir+"/SKILL.md", "---\nname: "+dir+"\ndescription: Goes.\n---\n", 0o644)
		w.put(dir+"/tools.json", triageTools, 0o644)
	})
	all := w.lib.Catalog(t.Context()).Attached()
	known := func() (n int) {
		for _, p := range all {
			if _, _, err := w.srv.files.Load(p); err == nil && len(w.srv.files.Names(p)) > 0 {
				n++
			}
		}
		return n
	}
	if got := known(); got != packs+1 {
		t.Fatalf("the tools of %d packs are known, want %d", got, packs+1)
	}
	each(func(dir string) {
		if err := os.RemoveAll(filepath.Join(w.root, dir)); err != nil {
			t.Fatal(err)
		}
	})
	n := 0
	for _, p := range all {
		if len(w.srv.files.Names(p)) > 0 {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the tools of %d packs are known, want those of the one that is there", n)
	}
}
