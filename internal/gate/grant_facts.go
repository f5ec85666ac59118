package gate

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
)

// maxFiles is how many files of a pack a grant remembers, to name the ones that
// change.
const maxFiles = 2000

// newGrant returns the grant for calls with the same facts as this one.
func newGrant(r *call.Call) Grant {
	g := packGrant(r, r.Kind, r.Subject(), r.Facts())
	if r.Run != nil {
		g.Tool = r.Run.Tool
		if g.Tool == "" {
			g.Argv = append([]string{r.Run.Command.Program.Path}, r.Run.Command.Args...)
		}
	}
	return g
}

// newUseGrant returns the grant for using the pack of a call; see [call.KindUse].
func newUseGrant(r *call.Call) Grant {
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

// includes reports whether g allows using a pack and have allows a part of that.
func (g *Grant) includes(have Grant) bool {
	same := func(fact string) bool { return slices.Equal(call.FactOf(g.Facts, fact), call.FactOf(have.Facts, fact)) }
	return g.Kind == call.KindUse && slices.Contains(call.FactOf(g.Facts, call.FactKind), string(have.Kind)) && same(call.FactPerson) && same(call.FactWhere)
}

// clone returns a copy of g that shares nothing mutable.
func (g Grant) clone() Grant {
	g.Argv, g.Files, g.Facts = slices.Clone(g.Argv), slices.Clone(g.Files), slices.Clone(g.Facts)
	for i, f := range g.Facts {
		g.Facts[i].Values = slices.Clone(f.Values)
	}
	if g.Void != nil {
		g.Void = &Void{At: g.Void.At, Changes: slices.Clone(g.Void.Changes)}
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

// changes returns how a grant differs from a call with the same subject; see
// [prompt.Changes].
func (g *Grant) changes(now *Grant) []string {
	return prompt.Changes(g.Facts, now.Facts, g.Files, now.Files)
}
