package claims

import (
	"context"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// What a run changes in a layer is applied when it ends, so a run that reads that
// folder without taking turns there must be kept apart from it. Two runs that take
// turns wait for their turn anyway.
func TestClaimsOfLayers(t *testing.T) {
	own := Of(new(gate.Permit), &gate.Run{Policy: sandbox.Policy{Layers: []sandbox.Layer{
		{Folder: "/none/p", Kind: sandbox.LayerOverlay}, {Folder: "/none/r", Kind: sandbox.LayerReadOnly},
	}}})
	for _, c := range []struct {
		other Claim
		want  bool
	}{
		{Claim{bound: []string{"/none/p/r.sh"}}, true},
		{Claim{bound: []string{"/none/r/r.sh"}}, false},
		{Claim{bound: []string{"/none/p/r.sh"}, layers: []string{"/none/p"}}, false},
		{Claim{bound: []string{"/none/p/sub/r.sh"}, layers: []string{"/none/p/sub"}}, true},
		{Claim{layers: []string{"/none/p"}, writes: []string{"/none/p"}}, false},
	} {
		if got := own.conflicts(&c.other); got != c.want || c.other.conflicts(own) != c.want {
			t.Errorf("%v and %v conflict: %t, want %t", own, c.other, got, c.want)
		}
	}
}

// Claims wait for those before them that they conflict with, and for no others.
func TestClaims(t *testing.T) {
	var c Set
	ctx := t.Context()
	writer := &Claim{writes: []string{"/w"}}
	free, err := c.Take(ctx, writer)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []*Claim{{writes: []string{"/w"}}, {writes: []string{"/v"}, bound: []string{"/v", "/x"}}, {bound: []string{"/www"}}} {
		done, err := c.Take(ctx, other)
		if err != nil {
			t.Fatalf("take(%v) = %v", other, err)
		}
		done()
	}
	for _, other := range []*Claim{{bound: []string{"/w/f"}}, {bound: []string{"/"}}, {writes: []string{"/w/sub"}, bound: []string{"/w"}}} {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if _, err := c.Take(short, other); err == nil {
			t.Errorf("take(%v) did not wait", other)
		}
		cancel()
	}
	second := make(chan func())
	go func() {
		done, err := c.Take(ctx, &Claim{writes: []string{"/w"}, bound: []string{"/w"}})
		if err != nil {
			t.Error(err)
		}
		second <- done
	}()
	select {
	case <-second:
		t.Fatal("the bound one did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	free()
	(<-second)()
	if len(c.all) != 0 {
		t.Errorf("%d claims are left", len(c.all))
	}
}
