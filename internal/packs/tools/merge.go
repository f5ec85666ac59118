package tools

import (
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/toolname"
)

// Merge makes one set of those of several files of a pack, in their order. Two
// tools of different files whose names a person, a client or a model could
// take for each other make both files' tools unusable: each such pair is an
// error that names both. The set is nil when no tool is left.
func Merge(sets ...*Set) (*Set, []diag.Diagnostic) {
	var problems []diag.Diagnostic
	refused := make(map[string]bool) // :: file → one of its names is another file's too
	first := make(map[string]*Tool)  // :: folded name → the tool that has it
	for _, s := range sets {
		if s == nil {
			continue
		}
		for _, t := range s.Tools {
			folded := toolname.Fold(t.Name)
			other := first[folded]
			if other == nil {
				first[folded] = t
				continue
			}
			refused[t.File], refused[other.File] = true, true
			problems = append(problems, diag.Diagnostic{
				Code: CodeNameDuplicate, Severity: diag.Error, File: t.File, Line: t.Line,
				Message: fmt.Sprintf("tool %q has the same name as %q in %s:%d, or one that looks the same, so neither file's tools are used", t.Name, other.Name, other.File, other.Line),
				Hint:    "rename one of them",
			})
		}
	}
	merged := &Set{}
	for _, s := range sets {
		if s != nil {
			merged.Tools = append(merged.Tools, s.Tools...)
		}
	}
	merged.Tools = slices.DeleteFunc(merged.Tools, func(t *Tool) bool { return refused[t.File] })
	if len(merged.Tools) == 0 {
		return nil, problems
	}
	return merged, problems
}
