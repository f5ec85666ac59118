package grants

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
)

// maxFiles is how many files of a pack a grant remembers, to name the ones that
// change.
const maxFiles = 2000

// New returns the grant for calls with the same facts as this one.
func New(r *call.Call) Grant {
	g := packGrant(r, r.Kind, r.Subject(), r.Facts())
	if r.Run != nil {
		g.Tool = r.Run.Tool
		if g.Tool == "" {
			g.Argv = append([]string{r.Run.Command.Program.Path}, r.Run.Command.Args...)
		}
	}
	return g
}

// NewUse returns the grant for using the pack of a call; see [call.KindUse].
func NewUse(r *call.Call) Grant {
	return packGrant(r, call.KindUse, r.UseSubject(), r.UseFacts())
}

func packGrant(r *call.Call, kind call.Kind, subject string, facts []call.Fact) Grant {
	g := Grant{
		Person: r.Caller.Person, Kind: kind, Pack: r.Pack.ID, Dir: r.Pack.Dir,
		Digest: call.DigestOf(facts), Subject: subject, Facts: facts,
	}
	g.ID = g.Digest[:8]
	if len(r.Pack.Files) <= maxFiles {
		g.Files = r.Pack.Files // never changed, and shared by all requests about the pack
	}
	return g
}

// contentChanged reports whether what was approved is no longer there: the pack,
// the tool's declaration, or the bytes of a program at the same path. Other facts,
// such as the project, may differ between servers and change back.
func (g *Grant) contentChanged(now *Grant) bool {
	if !slices.Equal(call.FactOf(g.Facts, call.FactPack), call.FactOf(now.Facts, call.FactPack)) || !slices.Equal(call.FactOf(g.Facts, call.FactDefinition), call.FactOf(now.Facts, call.FactDefinition)) {
		return true
	}
	then, is := call.FactOf(g.Facts, call.FactProgram), call.FactOf(now.Facts, call.FactProgram)
	if len(then) > 2 && len(is) > 2 && then[1] == is[1] && then[2] != is[2] {
		return true
	}
	then, is = call.FactOf(g.Facts, call.FactInterpreter), call.FactOf(now.Facts, call.FactInterpreter)
	for i := 0; i+call.InterpreterValues <= min(len(then), len(is)); i += call.InterpreterValues {
		if then[i+1] == is[i+1] && then[i+2] != is[i+2] {
			return true
		}
	}
	return false
}

// Changes returns how a grant differs from a call with the same subject; see
// [prompt.Changes].
func (g *Grant) Changes(now *Grant) []string {
	return prompt.Changes(g.Facts, now.Facts, g.Files, now.Files)
}
