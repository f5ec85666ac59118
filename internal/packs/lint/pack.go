package lint

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

// A subject is one pack or tool file that is being checked.
type subject struct {
	opts     *Options
	folder   string // as it is shown
	name     string // of the folder, as it was found
	pack     *packs.Pack
	dir      *packfs.Dir
	doc      *frontmatter.Document // nil when it could not be read
	node     *yaml.Node            // the keys of doc
	src      []byte                // the entry document, nil when it could not be read
	set      *tools.Set            // nil when there is none
	wrong    bool                  // a tool file that the profile reads has errors
	unread   bool                  // a tool file has errors, whatever the profile
	problems []diag.Diagnostic     // File is relative to folder
}

// pack checks one pack of a scan. folder is its directory for messages, and shown the
// path of the result.
func (c *Checker) pack(ctx context.Context, p *packs.Pack, folder, shown string) (Result, error) {
	r := Result{Path: shown, Description: p.Description}
	if !p.Frontmatter.IsZero() {
		r.Name = p.Frontmatter.Name()
	}
	s := &subject{opts: &c.opts, folder: folder, pack: p, name: filepath.Base(p.Dir)}
	if abs, err := filepath.Abs(folder); err == nil {
		s.name = filepath.Base(abs)
	}
	dir, err := p.OpenDir()
	if err == nil {
		defer dir.Close()
		s.read(dir)
	}
	for _, d := range p.Problems {
		s.take(s.sourceOf(d, true), d)
	}
	if err != nil {
		s.problems = append(s.problems, unreadable(p.Entry, err))
		r.Problems = s.placed()
		return r, ctx.Err()
	}
	set, problems, err := c.files.Load(p)
	if err != nil {
		s.problems = append(s.problems, unreadable(formats.ToolsJSONFile, err))
	}
	s.set, s.unread = set, err != nil || diag.HasErrors(problems)
	for _, d := range problems {
		s.take(s.sourceOf(d, false), d)
	}
	s.problems = append(s.problems, toolfiles.Denied(ctx, p, set)...)
	s.profile()
	if err := s.texts(ctx); err != nil {
		return Result{}, err
	}
	r.Problems = s.placed()
	return r, ctx.Err()
}

// read reads the entry document of the pack, whose folder is dir.
func (s *subject) read(dir *packfs.Dir) {
	s.dir = dir
	p := s.pack
	if p.Frontmatter.IsZero() {
		return
	}
	// The scan has already reported any error.
	s.src, _ = dir.ReadAll(p.Entry, max(s.opts.Limits.EntryDoc, 1<<20))
	s.src = charset.Text(s.src)
	if !p.Loose {
		s.doc, _ = frontmatter.Inspect(p.Entry, s.src, cmp.Or(s.opts.Limits.Frontmatter, frontmatter.MaxSize))
	}
	if s.doc == nil {
		s.doc = &frontmatter.Document{Name: p.Frontmatter.Name(), Description: p.Frontmatter.Description(), Modes: p.Frontmatter.Modes()}
	}
	s.node = s.doc.Node()
}

// placed returns the problems with file paths for people.
func (s *subject) placed() []diag.Diagnostic {
	out := slices.Clone(s.problems)
	for i := range out {
		out[i].File = filepath.Join(s.folder, filepath.FromSlash(out[i].File))
	}
	return out
}

// report adds a problem about a place in the entry document; n may be nil.
func (s *subject) report(severity diag.Severity, code string, n *yaml.Node, message, hint string) {
	d := diag.Diagnostic{Code: code, Severity: severity, File: s.pack.Entry, Message: message, Hint: hint}
	if n != nil {
		d.Line, d.Column = n.Line, n.Column
	}
	s.problems = append(s.problems, d)
}

// key returns a key of the frontmatter and its value, or nil.
func (s *subject) key(name string) (key, value *yaml.Node) {
	if s.node == nil {
		return nil, nil
	}
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		if s.node.Content[i].Value == name {
			return s.node.Content[i], s.node.Content[i+1]
		}
	}
	return nil, nil
}

// A source says what another package's diagnostic is about.
type source int

const (
	fromScan     source = iota // the folder, the id
	fromHead                   // the frontmatter
	fromMarkdown               // tools in the entry document
	fromPackFile               // a *.tool.json
	fromList                   // a tools.json
)

// headCodes lists the codes about frontmatter.
var headCodes = []string{ // never modified
	frontmatter.CodeMissing, frontmatter.CodeUnclosed, frontmatter.CodeTooLarge, frontmatter.CodeNotMapping,
	frontmatter.CodeInvalid, frontmatter.CodeRecovered, frontmatter.CodeDuplicate, frontmatter.CodeWrongType,
	frontmatter.CodeCharset, frontmatter.CodeComment, frontmatter.CodeNameMissing, frontmatter.CodeNameNotText, frontmatter.CodeDescriptionMissing, frontmatter.CodeDescriptionNotText,
}

func (s *subject) sourceOf(d diag.Diagnostic, scanned bool) source {
	switch format := formats.Of(d.File); {
	case scanned && slices.Contains(headCodes, d.Code):
		return fromHead
	case scanned:
		return fromScan
	case format == formats.ToolsJSON:
		return fromList
	case format == formats.ToolPack:
		return fromPackFile
	default:
		return fromMarkdown
	}
}
