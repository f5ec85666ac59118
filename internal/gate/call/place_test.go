package call

import (
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// An answer holds for one place: any difference in where a program runs makes another
// question. An answer from before other places existed holds on this machine.
func TestPlaceIsAFact(t *testing.T) {
	at := func(p sandbox.Place) Request {
		return Request{Kind: KindRun, Run: &Run{Place: p, Tool: "t"}}
	}
	local := at(sandbox.Place{})
	if f := local.facts(sandbox.LevelFull); FactOf(f, FactPlace) != nil {
		t.Errorf("a local run has the fact %q", FactOf(f, FactPlace))
	}
	box := sandbox.Place{Runner: sandbox.RunnerContainer, Image: "sha256:1", Name: "box@sha256:1", Runtime: "runc", Terms: "terms"}
	seen := []string{DigestOf(local.facts(sandbox.LevelFull))}
	calls := []string{local.digest(sandbox.LevelFull)}
	for _, change := range []func(*sandbox.Place){
		func(*sandbox.Place) {},
		func(p *sandbox.Place) { p.Image = "sha256:2" },
		func(p *sandbox.Place) { p.Name = "other@sha256:1" },
		func(p *sandbox.Place) { p.Runtime = "runsc" },
		func(p *sandbox.Place) { p.Terms = "others" },
	} {
		p := box
		change(&p)
		r := at(p)
		digest := DigestOf(r.facts(sandbox.LevelFull))
		if slices.Contains(seen, digest) || slices.Contains(calls, r.digest(sandbox.LevelFull)) {
			t.Errorf("the place %+v is no fact of its own", p)
		}
		seen, calls = append(seen, digest), append(calls, r.digest(sandbox.LevelFull))
	}
	if got := box.String(); got != "container:runc" || !strings.HasPrefix(sandbox.Place{}.String(), "local") {
		t.Errorf("String() = %q, %q", got, sandbox.Place{})
	}
}
