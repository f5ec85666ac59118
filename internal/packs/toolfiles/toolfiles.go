// Package toolfiles compiles the tools that the files of a pack declare, when somebody
// asks for them, and says which tools cannot be used because a file that they need is
// denied.
//
// It looks for no packs (see package packs), parses no format itself (see packs/tools
// and what is below it), and runs nothing. It trusts no time or size of a file: the
// files are read each time, and compiled again only if their bytes differ.
package toolfiles

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/loose"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/markdown"
)

// Files compiles the tools of packs, in whatever format they are declared, and keeps
// the result until the bytes of one of the files differ. The files are read each time:
// they are small, and their times can lie. Safe for concurrent use.
type Files struct {
	limits tools.Limits // of one file
	size   int64        // of one file
	count  int          // of the tools of a pack
	mode   string

	mu    sync.Mutex
	known map[string]compiled // :: [Pack.Dir] → its tools
	names map[string]named    // :: [Pack.Dir] → their names, if only the names were asked for
	kept  int                 // how many of both Forget left
}

// named has the names of the tools of one pack.
type named struct {
	state uint64 // the pack's, when they were read
	lines string
}

// compiled is the result for the files of one pack.
type compiled struct {
	sum      [sha256.Size]byte // of all of them
	set      *tools.Set
	problems []diag.Diagnostic
}

// New returns a Files that has compiled nothing yet. mode is the configured mode; empty
// means "Global".
func New(l tools.Limits, mode string) *Files {
	return &Files{
		limits: l,
		size:   cmp.Or(int64(l.Size), 1<<20),
		count:  cmp.Or(l.Count, 200),
		mode:   mode,
		known:  make(map[string]compiled),
		names:  make(map[string]named),
	}
}

// A source is one file that declares tools.
type source struct {
	name string
	data []byte
	bad  *diag.Diagnostic // why it could not be read, or nil
}

// maxSources bounds all files of a pack together: they may have so many times the limit
// of one file.
const maxSources = 8

// Load returns a pack's tools, including those that its mode hides, and what is wrong
// with them. A file with an error gives problems and no tools; the tools of the other
// files stay usable. If two files declare the same name, both are wrong. The set is nil
// if there is no tool. An error means that the pack is gone, or that its directory
// cannot be opened.
func (f *Files) Load(p *packs.Pack) (*tools.Set, []diag.Diagnostic, error) {
	if p.Loose && !p.Valid {
		return nil, nil, nil // the pack says why
	}
	dir, err := p.OpenDir()
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	return f.LoadFrom(dir, p)
}

// LoadFrom is Load for a pack whose folder [packs.Pack.OpenDir] opened.
func (f *Files) LoadFrom(dir *packfs.Dir, p *packs.Pack) (*tools.Set, []diag.Diagnostic, error) {
	if p.Loose && !p.Valid {
		return nil, nil, nil
	}
	sources := f.read(dir, p)
	if lacks(sources, p.ToolFiles) {
		// When another folder takes its place, a folder loses its files one by one. Such
		// a state is not the pack's.
		now, err := p.OpenDir()
		if err != nil {
			return nil, nil, err
		}
		now.Close()
	}
	if len(sources) == 0 {
		return nil, nil, nil
	}
	sum := sumOf(sources)
	f.mu.Lock()
	have, ok := f.known[p.Dir]
	f.mu.Unlock()
	if ok && have.sum == sum {
		return have.set, have.problems, nil
	}
	set, problems := f.compile(p, sources)
	f.mu.Lock()
	f.known[p.Dir] = compiled{sum: sum, set: set, problems: problems}
	f.mu.Unlock()
	return set, problems, nil
}

// lacks reports whether one of the files is not among the sources.
func lacks(sources []source, files []string) bool {
	return slices.ContainsFunc(files, func(name string) bool {
		return !slices.ContainsFunc(sources, func(s source) bool { return s.name == name })
	})
}

// Forget drops what Load and Name found of packs that are not in the Catalog. It looks
// for them only when there may be as many of them as of others, so calling it with every
// Catalog costs nothing.
func (f *Files) Forget(c *packs.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known)+len(f.names) <= 2*f.kept+minForget {
		return
	}
	there := make(map[string]bool, len(c.All()))
	for _, p := range c.All() {
		there[p.Dir] = true
	}
	maps.DeleteFunc(f.known, func(dir string, _ compiled) bool { return !there[dir] })
	maps.DeleteFunc(f.names, func(dir string, _ named) bool { return !there[dir] })
	f.kept = len(f.known) + len(f.names)
}

// minForget is for how many packs tools are kept even if the packs are gone.
const minForget = 50

// read returns the files of a pack that declare tools, including those that cannot be
// read. An entry document counts only if it mentions a command.
func (f *Files) read(dir *packfs.Dir, p *packs.Pack) []source {
	var sources []source
	left := maxSources * f.size
	for i, name := range p.ToolFilesNow(dir) {
		if i > f.count {
			// Every *.tool.json is a tool, so there are too many already.
			sources = append(sources, source{name: name, bad: tooMany(name, f.count)})
			break
		}
		data, err := dir.ReadAll(name, min(f.size, left))
		if errors.Is(err, packfs.ErrNotFound) {
			continue // gone since
		}
		s := source{name: name, data: data}
		if err != nil {
			s.bad = f.unreadable(name, err, left)
		}
		left -= int64(len(data))
		sources = append(sources, s)
	}
	if p.Loose || p.Entry == "" {
		return sources
	}
	// If the entry document cannot be read, the pack says so.
	if data, err := dir.ReadAll(p.Entry, p.Limits().EntryDoc); err == nil && markdown.MentionsCommand(charset.Text(data)) {
		s := source{name: p.Entry, data: data}
		if set := charset.Of(data); set != charset.UTF8 {
			// Guessing which bytes a program should get would be wrong.
			s.bad = &diag.Diagnostic{
				Code: tools.CodeNotUTF8, Severity: diag.Error, File: p.Entry,
				Message: fmt.Sprintf("the document is %s, not UTF-8, so the tools that it declares are not read", set), Hint: "save the file as UTF-8",
			}
		}
		sources = append(sources, s)
	}
	return sources
}

func (f *Files) unreadable(name string, err error, left int64) *diag.Diagnostic {
	d := &diag.Diagnostic{
		Code: packs.CodeToolsUnreadable, Severity: diag.Error, File: name,
		Message: "the file cannot be read: " + packfs.Cause(err), Hint: "make it a plain file inside the pack that you may read",
	}
	if e, ok := errors.AsType[*packfs.TooLargeError](err); ok {
		d.Code, d.Hint = tools.CodeTooLarge, "move what is not a declaration of a tool out of it"
		d.Message = fmt.Sprintf("file has %d bytes, and at most %d are read", e.Size, f.size)
		if left < f.size {
			d.Message = fmt.Sprintf("the files with tools have more than %d bytes together, and the rest is not read", maxSources*f.size)
			d.Hint = "split the pack"
		}
	}
	return d
}

func tooMany(name string, limit int) *diag.Diagnostic {
	return &diag.Diagnostic{
		Code: tools.CodeTooMany, Severity: diag.Error, File: name,
		Message: fmt.Sprintf("the pack has more than %d tools, and those of this file and later ones are not read", limit), Hint: "split the pack",
	}
}

// sumOf returns a digest of the files' names and bytes.
func sumOf(sources []source) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, s := range sources {
		state := s.data
		if s.bad != nil {
			state = []byte(s.bad.Message)
		}
		var head [16]byte
		binary.LittleEndian.PutUint64(head[:8], uint64(len(s.name)))
		binary.LittleEndian.PutUint64(head[8:], uint64(len(state)))
		h.Write(head[:])
		io.WriteString(h, s.name)
		h.Write(state)
	}
	h.Sum(sum[:0])
	return sum
}

// compile parses all files of a pack.
func (f *Files) compile(p *packs.Pack, sources []source) (*tools.Set, []diag.Diagnostic) {
	var sets []*tools.Set
	var problems []diag.Diagnostic
	n := 0
	for _, s := range sources {
		if s.bad != nil {
			problems = append(problems, *s.bad)
			continue
		}
		set, found := f.parse(p, s)
		problems = append(problems, found...)
		if set == nil {
			continue
		}
		if n += len(set.Tools); n > f.count {
			problems = append(problems, *tooMany(s.name, f.count))
			break
		}
		sets = append(sets, set)
	}
	set, found := tools.Merge(sets...)
	problems = append(problems, found...)
	diag.Sort(problems)
	return set, problems
}

func (f *Files) parse(p *packs.Pack, s source) (*tools.Set, []diag.Diagnostic) {
	switch {
	case s.name == p.Entry && !p.Loose:
		return f.parseMarkdown(p, s)
	case p.Loose:
		t, problems := loose.Parse(s.name, s.data, f.limits)
		if t == nil {
			return nil, problems
		}
		return &tools.Set{Tools: []*tools.Tool{t}}, problems
	default:
		return formats.Parse(formats.Of(s.name), s.name, s.data, f.limits)
	}
}

// parseMarkdown compiles the tools that the entry document declares. The
// frontmatter is read again: the file may be another than when it was scanned.
func (f *Files) parseMarkdown(p *packs.Pack, s source) (*tools.Set, []diag.Diagnostic) {
	doc, found := frontmatter.Inspect(s.name, s.data, p.Limits().Frontmatter)
	if doc == nil || diag.HasErrors(found) {
		return nil, nil // the pack says why
	}
	return markdown.Parse(s.name, s.data, markdown.DefaultsOf(doc), f.limits)
}

// Offered is Load without the tools of other modes than the configured one. The set is
// nil if none is left.
func (f *Files) Offered(p *packs.Pack) (*tools.Set, []diag.Diagnostic, error) {
	set, problems, err := f.Load(p)
	if set == nil {
		return nil, problems, err
	}
	hidden := 0
	for _, t := range set.Tools {
		if !packs.IsOffered(t.Modes, f.mode) {
			hidden++
		}
	}
	switch hidden {
	case 0:
		return set, problems, err
	case len(set.Tools):
		return nil, problems, err
	}
	shown := &tools.Set{}
	for _, t := range set.Tools {
		if packs.IsOffered(t.Modes, f.mode) {
			shown.Tools = append(shown.Tools, t)
		}
	}
	return shown, problems, err
}

// HasTools reports whether a pack has a tool that can be enabled.
func (f *Files) HasTools(p *packs.Pack) bool {
	has, _, _ := f.Look(p)
	return has
}

// Look returns what HasTools does, and the problems that Load finds, and reads the files
// only once.
func (f *Files) Look(p *packs.Pack) (hasTools bool, problems []diag.Diagnostic, err error) {
	set, problems, err := f.Offered(p)
	return err == nil && canEnable(set), problems, err
}

// CanEnable reports whether a set that Load returned has a tool that can be enabled in
// the configured mode.
func (f *Files) CanEnable(set *tools.Set) bool {
	return set != nil && slices.ContainsFunc(set.Tools, func(t *tools.Tool) bool { return t.Command != nil && packs.IsOffered(t.Modes, f.mode) })
}

// canEnable reports whether there is a tool that can be enabled.
func canEnable(set *tools.Set) bool {
	return set != nil && slices.ContainsFunc(set.Tools, func(t *tools.Tool) bool { return t.Command != nil })
}

// Once returns a Once, which reads the files of each pack once, when they are asked for
// the first time.
func (f *Files) Once() *Once { return &Once{files: f, sets: make(map[*packs.Pack]*tools.Set)} }

// Once is for one answer that mentions a pack in several places. It says the same in all
// of them, even if the files change meanwhile. It is for one goroutine.
type Once struct {
	files *Files
	sets  map[*packs.Pack]*tools.Set // :: pack → what Offered returned for it
}

// Offered is [Files.Offered] without the problems. It returns nil if there is no tool.
func (o *Once) Offered(p *packs.Pack) *tools.Set {
	set, known := o.sets[p]
	if !known {
		var err error
		if set, _, err = o.files.Offered(p); err != nil {
			set = nil
		}
		o.sets[p] = set
	}
	return set
}

// HasTools is [Files.HasTools].
func (o *Once) HasTools(p *packs.Pack) bool { return canEnable(o.Offered(p)) }
