package enabled

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// Set returns the tools of a pack, or an error that says why there are none.
func (r *Resolver) Set(pack *packs.Pack) (*tools.Set, error) {
	set, problems, err := r.opts.Tools.Offered(pack)
	if err != nil {
		return nil, err
	}
	if set == nil && diag.HasErrors(problems) {
		e := toolerr.New(toolerr.CodeInvalidTools,
			"Tell the user, who can mend the file. Until then use the pack's documents, or capability_packs_exec_best_effort for one command.",
			"the tools of pack %q cannot be read", pack.ID)
		e.Problems = problems
		return nil, e
	}
	if set == nil || len(set.Tools) == 0 {
		return nil, toolerr.New(toolerr.CodeInvalidTools,
			"Use its documents and files; capability_packs_exec_best_effort can run one command.",
			"pack %q has no tools", pack.ID)
	}
	return set, nil
}

// Choose returns the tools with the given names, or all.
func Choose(set *tools.Set, names []string) ([]*tools.Tool, error) {
	if len(names) == 0 {
		return set.Tools, nil
	}
	var chosen []*tools.Tool
	for _, name := range names {
		t := set.Lookup(name)
		if t == nil {
			e := toolerr.New(toolerr.CodeInvalidArguments, "Name tools as the pack declares them, or leave tools out for all.", "the pack has no tool %q", name)
			e.Near = nearest(name, set)
			return nil, e
		}
		if !slices.Contains(chosen, t) {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

// Tool returns the tool of a pack that a call names, by its declared or its listed name. The
// tool has a command and is enabled.
func (r *Resolver) Tool(catalog *packs.Catalog, t *Tools, pack *packs.Pack, name string) (*tools.Tool, error) {
	set, err := r.Set(pack)
	if err != nil {
		return nil, err
	}
	tool := set.Lookup(name)
	if ref, ok := t.Listed(name); ok && ref.Pack == pack.ID {
		listed := set.Lookup(ref.Tool)
		if tool != nil && tool != listed {
			return nil, toolerr.New(toolerr.CodeInvalidArguments, "Give the name of the one as it is declared, or of the other as it is listed.",
				"%q is the declared name of one tool of pack %q and the listed name of another, %q", name, pack.ID, ref.Tool)
		}
		tool = listed
	}
	if tool == nil {
		meant := slices.DeleteFunc(r.Named(catalog, t, name), func(ref Ref) bool { return ref.Pack != pack.ID })
		if len(meant) == 1 {
			tool = set.Lookup(meant[0].Tool)
		}
	}
	if tool == nil {
		e := toolerr.New(toolerr.CodeNotFound, "Call capability_packs_enable_tools for the pack's tools.", "pack %q has no tool %q", pack.ID, name)
		e.Near = nearest(name, set)
		return nil, e
	}
	if tool.Command == nil {
		return nil, toolerr.New(toolerr.CodeNotExecutable, "Read the pack's documents for how it is meant to be used.", "tool %q of pack %q is only declared: %s", tool.Name, pack.ID, tool.DeclaredOnly)
	}
	if !r.IsOn(catalog, t, pack.ID, tool.Name) {
		return nil, toolerr.New(toolerr.CodeNotEnabled, "Call capability_packs_enable_tools with this pack_id first.", "tool %q of pack %q is not enabled in this chat", tool.Name, pack.ID)
	}
	return tool, nil
}
