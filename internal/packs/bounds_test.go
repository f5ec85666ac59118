package packs

import "testing"

// The default bounds of the walk; tests use smaller ones.
func TestUsualBounds(t *testing.T) {
	usual := bounds{dirs: 200_000, packDirs: 10_000, links: 10_000, packLinks: 100, entries: 100_000, steps: 48 << 20, packSteps: 6 << 20}
	if got := (bounds{}).withDefaults(); got != usual {
		t.Errorf("the bounds are %+v, want %+v", got, usual)
	}
	want := usual
	want.packDirs = 5
	if got := (bounds{packDirs: 5}).withDefaults(); got != want {
		t.Errorf("with one of its own, the bounds are %+v", got)
	}
}
