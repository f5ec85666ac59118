package packs

import "testing"

// The bounds of the walk are these, whatever smaller ones tests use.
func TestUsualBounds(t *testing.T) {
	usual := bounds{dirs: 200_000, packDirs: 10_000, entries: 100_000}
	if got := (bounds{}).withDefaults(); got != usual {
		t.Errorf("the bounds are %+v, want %+v", got, usual)
	}
	if got := (bounds{packDirs: 5}).withDefaults(); got != (bounds{dirs: usual.dirs, packDirs: 5, entries: usual.entries}) {
		t.Errorf("with one of its own, the bounds are %+v", got)
	}
}
