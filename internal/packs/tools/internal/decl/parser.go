// Package decl compiles one declaration of a tool: its name, parameters, command, policy
// and output. It reports each problem with its position. The formats share it.
//
// It does not know how a file contains its declarations: each format finds them in its own
// package. The checks of a command apply to every format; the rest is for JSON formats,
// which differ by a [Dialect].
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

// maxDiagnostics bounds how many problems of a file are reported.
const maxDiagnostics = 100

// A Dialect describes how a format declares tools. All fields but the first two are for JSON.
type Dialect struct {
	Parameter string // the format's word for a parameter
	Declare   string // how to declare one, for hints

	Published string                    // the file with the published schema, for hints
	Shape     func() *jsonschema.Schema // the part of that schema about one tool

	Flat         bool // parameters are a flat map that also names the sources of values
	WantsCommand bool // a tool without a command gets a warning
	ReadOnly     bool // a tool is read-only unless it says otherwise
	Speak        bool // a tool's output is read aloud unless it says otherwise
}

// A Parser parses one file and collects its problems.
type Parser struct {
	File    string // as shown to people
	Limits  tools.Limits
	dialect Dialect
	lines   []int // offsets of the beginnings of lines

	Found   []diag.Diagnostic
	Errors  int // including those that do not fit in Found
	dropped int
}

// New returns a Parser of a file in the dialect d.
func New(file string, limits tools.Limits, d Dialect) *Parser {
	return &Parser{File: file, Limits: limits.OrDefault(), dialect: d, lines: []int{0}}
}

// Fits reports whether a file is small enough to parse; if not, it adds a diagnostic.
func (p *Parser) Fits(src []byte) bool {
	if len(src) <= p.Limits.Size {
		return true
	}
	p.Report(diag.Error, tools.CodeTooLarge, nil,
		fmt.Sprintf("file has %d bytes, and at most %d are read", len(src), p.Limits.Size), "move what is not a declaration of a tool out of it")
	return false
}

// SetText sets the text that offsets refer to.
func (p *Parser) SetText(src []byte) {
	for i, c := range src {
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
}

// Read parses the JSON of a file. After an error, which it reports, root is nil. The
// offsets of nodes refer to the returned text.
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

// Finish returns the tools, or nil if there was an error, and all diagnostics.
func (p *Parser) Finish(set *tools.Set) (*tools.Set, []diag.Diagnostic) {
	if p.Errors > 0 {
		set = nil
	}
	diag.Sort(p.Found)
	if p.dropped > 0 {
		p.Found = append(p.Found, diag.Diagnostic{
			Code: tools.CodeMore, Severity: diag.Info, File: p.File,
			Message: fmt.Sprintf("%d more problems are not shown", p.dropped), Hint: "fix these first",
		})
	}
	return set, p.Found
}

// Names reports names that cannot be served, and names that cannot be told apart.
func (p *Parser) Names(list []*strictjson.Node) {
	first := make(map[string]*strictjson.Node) // :: folded name → the first tool with it
	for _, n := range list {
		at := n.Get("name")
		if at == nil || at.Kind != strictjson.Text {
			continue // the shape check reports it
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
	// Reserve space for errors, so that warnings do not crowd them out.
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
