package packs

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

	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/markdown"
)

// ToolFiles compiles the tools of packs, in whatever format they are declared,
// and keeps what it compiled until the bytes of one of the files differ. The
// files are read each time: they are small, and their times can lie. Safe for
// concurrent use.
type ToolFiles struct {
	limits tools.Limits // of one file
	size   int64        // of one file
	count  int          // of the tools of a pack
	mode   string

	mu    sync.Mutex
	known map[string]compiled // :: [Pack.Dir] → its tools
	names map[string]named    // :: [Pack.Dir] → their names, as far as somebody wanted only those
	kept  int                 // how many of both Forget left
}

// named are the names of the tools in the files of one pack.
type named struct {
	state uint64 // the pack's, when they were read
	lines string
}

// compiled is what came of the files of one pack.
type compiled struct {
	sum      [sha256.Size]byte // of all of them
	set      *tools.Set
	problems []diag.Diagnostic
}

// NewToolFiles returns a ToolFiles that has compiled nothing yet. mode is the
// configured one; empty means "Global".
func NewToolFiles(l tools.Limits, mode string) *ToolFiles {
	return &ToolFiles{
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
	bad  *diag.Diagnostic // it could not be read
}

// maxSources is how many times the limit of one file all files of a pack may
// have together.
const maxSources = 8

// Load returns a pack's tools, those that its mode hides too, and what is
// wrong with them. A file that is wrong gives problems and no tools, while
// those of the other files stay usable; two files with the same name in them
// are both wrong. The set is nil when there is no tool. The error is that the
// pack is gone, or its directory cannot be opened.
func (f *ToolFiles) Load(p *Pack) (*tools.Set, []diag.Diagnostic, error) {
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

// LoadFrom is Load of a pack whose folder is open, by [Pack.OpenDir].
func (f *ToolFiles) LoadFrom(dir *packfs.Dir, p *Pack) (*tools.Set, []diag.Diagnostic, error) {
	if p.Loose && !p.Valid {
		return nil, nil, nil
	}
	sources := f.read(dir, p)
	if lacks(sources, p.ToolFiles) {
		// A folder that another one took the place of loses its files one by one, and
		// that is not what the pack is.
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

// lacks reports whether a file is not there that was.
func lacks(sources []source, files []string) bool {
	return slices.ContainsFunc(files, func(name string) bool {
		return !slices.ContainsFunc(sources, func(s source) bool { return s.name == name })
	})
}

// Forget drops what Load and Name found of packs that are not in the Catalog. It looks
// for them only when there may be as many as there are others, so that it costs
// nothing to call it with every Catalog.
func (f *ToolFiles) Forget(c *Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known)+len(f.names) <= 2*f.kept+minForget {
		return
	}
	there := make(map[string]bool, len(c.packs))
	for _, p := range c.packs {
		there[p.Dir] = true
	}
	maps.DeleteFunc(f.known, func(dir string, _ compiled) bool { return !there[dir] })
	maps.DeleteFunc(f.names, func(dir string, _ named) bool { return !there[dir] })
	f.kept = len(f.known) + len(f.names)
}

// minForget is how many packs' tools are kept whatever became of the packs.
const minForget = 50

// read returns the files of a pack that declare tools, and those that should
// and cannot be read. An entry document without a word of a command is none.
func (f *ToolFiles) read(dir *packfs.Dir, p *Pack) []source {
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
	// What cannot be read of the entry document is the pack's problem.
	if data, err := dir.ReadAll(p.Entry, p.Limits().EntryDoc); err == nil && markdown.MentionsCommand(charset.Text(data)) {
		s := source{name: p.Entry, data: data}
		if set := charset.Of(data); set != charset.UTF8 {
			// Which bytes a program gets is not guessed.
			s.bad = &diag.Diagnostic{
				Code: tools.CodeNotUTF8, Severity: diag.Error, File: p.Entry,
				Message: fmt.Sprintf("the document is %s, not UTF-8, so the tools that it declares are not read", set), Hint: "save the file as UTF-8",
			}
		}
		sources = append(sources, s)
	}
	return sources
}

func (f *ToolFiles) unreadable(name string, err error, left int64) *diag.Diagnostic {
	d := &diag.Diagnostic{
		Code: CodeToolsUnreadable, Severity: diag.Error, File: name,
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

// sumOf tells two states of the files apart.
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
func (f *ToolFiles) compile(p *Pack, sources []source) (*tools.Set, []diag.Diagnostic) {
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

func (f *ToolFiles) parse(p *Pack, s source) (*tools.Set, []diag.Diagnostic) {
	switch {
	case s.name == p.Entry && !p.Loose:
		return f.parseMarkdown(p, s)
	case p.Loose:
		t, problems := ParseLoose(s.name, s.data, f.limits)
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
func (f *ToolFiles) parseMarkdown(p *Pack, s source) (*tools.Set, []diag.Diagnostic) {
	doc, found := frontmatter.Inspect(s.name, s.data, p.Limits().Frontmatter)
	if doc == nil || diag.HasErrors(found) {
		return nil, nil // the pack says why
	}
	return markdown.Parse(s.name, s.data, markdown.DefaultsOf(doc), f.limits)
}

// Offered is Load without the tools that are for other modes than the
// configured one; the set is nil when there is none.
func (f *ToolFiles) Offered(p *Pack) (*tools.Set, []diag.Diagnostic, error) {
	set, problems, err := f.Load(p)
	if set == nil {
		return nil, problems, err
	}
	hidden := 0
	for _, t := range set.Tools {
		if !IsOffered(t.Modes, f.mode) {
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
		if IsOffered(t.Modes, f.mode) {
			shown.Tools = append(shown.Tools, t)
		}
	}
	return shown, problems, err
}

// HasTools reports whether a pack has a tool that can be enabled.
func (f *ToolFiles) HasTools(p *Pack) bool {
	has, _, _ := f.Look(p)
	return has
}

// Look is HasTools, and what Load says is wrong, with one look at the files.
func (f *ToolFiles) Look(p *Pack) (hasTools bool, problems []diag.Diagnostic, err error) {
	set, problems, err := f.Offered(p)
	return err == nil && canEnable(set), problems, err
}

// CanEnable reports whether a set that Load returned has a tool that can be enabled in
// the configured mode.
func (f *ToolFiles) CanEnable(set *tools.Set) bool {
	return set != nil && slices.ContainsFunc(set.Tools, func(t *tools.Tool) bool { return t.Command != nil && IsOffered(t.Modes, f.mode) })
}

// canEnable reports whether there is a tool that can be enabled.
func canEnable(set *tools.Set) bool {
	return set != nil && slices.ContainsFunc(set.Tools, func(t *tools.Tool) bool { return t.Command != nil })
}

// Once returns what reads the files of each pack once, when it is asked for the
// first time.
func (f *ToolFiles) Once() *ToolsOnce { return &ToolsOnce{files: f, sets: make(map[*Pack]*tools.Set)} }

// ToolsOnce is for one answer that says something of a pack in several places: it
// says the same in all of them, though the files may change meanwhile. It is for one
// goroutine.
type ToolsOnce struct {
	files *ToolFiles
	sets  map[*Pack]*tools.Set // :: pack → what Offered returned for it
}

// Offered is that of [ToolFiles], without what is wrong: nil when there is none.
func (o *ToolsOnce) Offered(p *Pack) *tools.Set {
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

// HasTools is that of [ToolFiles].
func (o *ToolsOnce) HasTools(p *Pack) bool { return canEnable(o.Offered(p)) }
