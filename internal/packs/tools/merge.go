package tools

import (
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/toolname"
)

// Merge combines the sets of a pack's files, in order. If a person, a client or a
// model could confuse the names of two tools in different files, both files' tools
// are unusable: each such pair is an error that names both. The set is nil if no tool
// is left.
func Merge(sets ...*Set) (*Set, []diag.Diagnostic) {
	var problems []diag.Diagnostic
	refused := make(map[string]bool) // :: file → another file has one of its names, too
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
