package tools

import (
	"fmt"
	"sort"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// maxDiagnostics is how many problems of one file are named.
const maxDiagnostics = 100

// A parser reads one file.
type parser struct {
	loader *Loader
	file   string
	limits Limits
	lines  []int // offsets at which lines begin

	toolPack bool // the file is a *.tool.json

	found   []diag.Diagnostic
	errors  int
	dropped int
}

// names reports names that cannot be served, and those that cannot be told
// apart.
func (p *parser) names(list []*node) {
	first := make(map[string]*node) // :: folded name → the tool that has it
	for _, n := range list {
		at := n.get("name")
		if at == nil || at.kind != kindText {
			continue // the shape says so
		}
		name := at.text
		if other, ok := first[fold(name)]; ok {
			line, _ := p.position(other.start)
			p.report(diag.Error, CodeNameDuplicate, at,
				fmt.Sprintf("tool %+q cannot be told apart from %+q in line %d", name, other.text, line), "rename one of them")
		} else {
			first[fold(name)] = at
		}
		if !validName(name) {
			severity := diag.Error
			if command, _ := commandOf(n); command == nil && printableName(name) {
				severity = diag.Warning // it is only listed
			}
			p.report(severity, CodeNameInvalid, at,
				fmt.Sprintf("tool name %+q is not made of 1 to 64 letters, digits, _ and -", clip(name)), "rename the tool")
		}
		if why := reserved(name); why != "" {
			p.report(diag.Error, CodeNameReserved, at, fmt.Sprintf("a tool cannot be called %+q: %s", clip(name), why), "rename the tool")
		}
	}
}

// report adds a diagnostic about n, or about the whole file if n is nil.
func (p *parser) report(severity diag.Severity, code string, n *node, message, hint string) {
	d := diag.Diagnostic{Code: code, Severity: severity, File: p.file, Message: message, Hint: hint}
	if n != nil {
		d.Line, d.Column = p.position(n.start)
		d.Pointer = n.pointer()
	}
	p.add(d)
}

func (p *parser) add(d diag.Diagnostic) {
	if d.Severity == diag.Error {
		p.errors++
	}
	// Keep room for errors: warnings must not push them out of sight.
	if len(p.found) >= maxDiagnostics || d.Severity != diag.Error && len(p.found) >= maxDiagnostics/2 {
		p.dropped++
		return
	}
	p.found = append(p.found, d)
}

// position returns the 1-based line and column (in bytes) of a source offset.
func (p *parser) position(offset int) (line, column int) {
	line = sort.SearchInts(p.lines, offset+1)
	return line, offset - p.lines[line-1] + 1
}

// clip shortens a name for a message.
func clip(s string) string { return cut(s, 100) }
