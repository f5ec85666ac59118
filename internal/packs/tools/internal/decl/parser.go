// Package decl compiles one declaration of a tool: its name, parameters, command,
// policy and output, and says what is wrong with them, where. Formats share it.
//
// It does not know how a file holds its declarations: each format finds them itself,
// in a package of its own. The checks of a command hold for every format; the rest is
// for those in JSON, which differ by a [Dialect].
package decl

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/toolname"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// maxDiagnostics is how many problems of one file are named.
const maxDiagnostics = 100

// A Dialect is how a format declares tools. All but the first two are for JSON.
type Dialect struct {
	Parameter string // what a parameter is called
	Declare   string // how one is declared, for hints

	Published string                    // the file with its schema, for hints
	Shape     func() *jsonschema.Schema // what that schema says of one tool

	Flat         bool // parameters are a flat map, which also says where values come from
	WantsCommand bool // a tool without a command gets a warning
	ReadOnly     bool // a tool is read-only unless it says otherwise
	Speak        bool // what a tool prints is read aloud unless it says otherwise
}

// A Parser reads one file, and collects what is wrong with it.
type Parser struct {
	File    string // as it is shown
	Limits  tools.Limits
	dialect Dialect
	lines   []int // offsets at which lines begin

	Found   []diag.Diagnostic
	Errors  int // also those that Found has no room for
	dropped int
}

// New returns a Parser of a file in the dialect d.
func New(file string, limits tools.Limits, d Dialect) *Parser {
	return &Parser{File: file, Limits: limits.OrDefault(), dialect: d, lines: []int{0}}
}

// Fits reports whether a file is no larger than what is read, or else that it is.
func (p *Parser) Fits(src []byte) bool {
	if len(src) <= p.Limits.Size {
		return true
	}
	p.Report(diag.Error, tools.CodeTooLarge, nil,
		fmt.Sprintf("file has %d bytes, and at most %d are read", len(src), p.Limits.Size), "move what is not a declaration of a tool out of it")
	return false
}

// SetText sets the text that offsets are in.
func (p *Parser) SetText(src []byte) {
	for i, c := range src {
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
}

// Read reads the JSON of a file, or reports why it cannot, and then root is
// nil. The text it returns is what the offsets of nodes are in.
func (p *Parser) Read(src []byte) (text []byte, root *strictjson.Node) {
	if !p.Fits(src) {
		return nil, nil
	}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	p.SetText(src)
	root, e := strictjson.Parse(src)
	if e != nil {
		d := diag.Diagnostic{Code: e.Code, Severity: diag.Error, File: p.File, Message: e.Problem, Hint: e.Hint}
		d.Line, d.Column = p.Position(e.Offset)
		p.add(d)
		return nil, nil
	}
	return src, root
}

// Finish returns what was parsed, unless there was an error, and what was
// found.
func (p *Parser) Finish(set *tools.Set) (*tools.Set, []diag.Diagnostic) {
	if p.Errors > 0 {
		set = nil
	}
	diag.Sort(p.Found)
	if p.dropped > 0 {
		p.Found = append(p.Found, diag.Diagnostic{
			Code: tools.CodeMore, Severity: diag.Info, File: p.File,
			Message: fmt.Sprintf("%d more problems are not shown", p.dropped), Hint: "mend these first",
		})
	}
	return set, p.Found
}

// Names reports names that cannot be served, and those that cannot be told
// apart.
func (p *Parser) Names(list []*strictjson.Node) {
	first := make(map[string]*strictjson.Node) // :: folded name → the tool that has it
	for _, n := range list {
		at := n.Get("name")
		if at == nil || at.Kind != strictjson.Text {
			continue // the shape says so
		}
		name := at.Text
		if other, ok := first[toolname.Fold(name)]; ok {
			line, _ := p.Position(other.Start)
			p.Report(diag.Error, tools.CodeNameDuplicate, at,
				fmt.Sprintf("tool %+q cannot be told apart from %+q in line %d", name, other.Text, line), "rename one of them")
		} else {
			first[toolname.Fold(name)] = at
		}
		if !toolname.Valid(name) {
			severity := diag.Error
			if command, _ := CommandOf(n); command == nil && toolname.Printable(name) {
				severity = diag.Warning // it is only listed
			}
			p.Report(severity, tools.CodeNameInvalid, at,
				fmt.Sprintf("tool name %+q is not made of 1 to 64 letters, digits, _ and -", phrase.Clip(name)), "rename the tool")
		}
		if why := toolname.Reserved(name); why != "" {
			p.Report(diag.Error, tools.CodeNameReserved, at, fmt.Sprintf("a tool cannot be called %+q: %s", phrase.Clip(name), why), "rename the tool")
		}
	}
}

// Report adds a diagnostic about n, or about the whole file if n is nil.
func (p *Parser) Report(severity diag.Severity, code string, n *strictjson.Node, message, hint string) {
	d := diag.Diagnostic{Code: code, Severity: severity, File: p.File, Message: message, Hint: hint}
	if n != nil {
		d.Line, d.Column = p.Position(n.Start)
		d.Pointer = n.Pointer()
	}
	p.add(d)
}

func (p *Parser) add(d diag.Diagnostic) {
	if d.Severity == diag.Error {
		p.Errors++
	}
	// Keep room for errors: warnings must not push them out of sight.
	if len(p.Found) >= maxDiagnostics || d.Severity != diag.Error && len(p.Found) >= maxDiagnostics/2 {
		p.dropped++
		return
	}
	p.Found = append(p.Found, d)
}

// Position returns the 1-based line and column (in bytes) of a source offset.
func (p *Parser) Position(offset int) (line, column int) {
	line = sort.SearchInts(p.lines, offset+1)
	return line, offset - p.lines[line-1] + 1
}
