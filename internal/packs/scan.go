package packs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/arena"
	"github.com/packs-mcp/packs-mcp/internal/packs/byname"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// Scan searches the roots and describes what it finds. It fails only if ctx ended.
// Problems of a root or a pack become diagnostics and do not affect the others.
func Scan(ctx context.Context, opts Options) (*Catalog, error) {
	c, _, err := rescan(ctx, opts, nil, nil)
	return c, err
}

// rescan is Scan, but reads only what changed since the scan that returned before, a
// memo (or nil) for each root. touched are the directories in which something may have
// changed, absolute with symlinks resolved; nil means any. It returns the memos for the
// next scan. With opts.whole, it also fails if the process runs out of something, see
// [packfs.IsStarved].
func rescan(ctx context.Context, opts Options, before []*memo.Memo, touched map[string]bool) (*Catalog, []*memo.Memo, error) {
	opts.Limits = opts.Limits.withDefaults()
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Catalog{}
	clock := opts.clock
	if clock == nil {
		clock = time.Now
	}
	memos := make([]*memo.Memo, len(opts.Roots))
	for i := range opts.Roots {
		root := &opts.Roots[i]
		s := &scanner{ctx: ctx, root: root, files: root.files(), bounds: opts.bounds.withDefaults(), whole: opts.whole, clock: clock, visited: newSeen(), touched: touched}
		if opts.Patient {
			s.bounds = s.bounds.patient()
		}
		s.origin = &Origin{Root: root.Dir, Source: root.Source, docs: root.Docs, memory: root.Memory, limits: opts.Limits}
		if before != nil {
			s.before = before[i]
		}
		err := s.scan()
		if err == nil {
			err = s.ended() // the last operation may have failed
		}
		if err != nil {
			return nil, nil, err
		}
		log.Debug("scanned root", "dir", s.root.Dir, "packs", len(s.found), "directories", s.dirs, "read", s.reads, "steps", s.steps)
		memos[i] = s.remember()
		assignIDs(s.found)
		c.add(&opts, s)
	}
	c.finish()
	return c, memos, nil
}

// scanner walks one root.
type scanner struct {
	ctx       context.Context // of the call of Scan that made this scanner
	root      *Root
	origin    *Origin
	bounds    bounds
	clock     func() time.Time
	before    *memo.Memo      // of the previous scan; nil: none
	old       *memo.Memo      // before, if it is for dir; otherwise an empty one
	touched   map[string]bool // see rescan
	dir       string          // the root's directory, absolute, symlinks resolved
	files     files           // where all of it is
	stamps    memo.Stamper
	dirs      int
	reads     int      // directories and documents that were opened
	steps     int      // steps that reading the documents took
	linkSteps int      // the part of these for documents that are links
	unread    int      // documents that were not read for lack of steps
	fullAt    *place   // the first directory that exceeded the bound; nil: none did
	deep      int      // directories whose subdirectories are too deep
	deepAt    place    // the first of them
	visited   seen     // directories relative to dir, and absolute paths of loose tools, symlinks resolved
	links     []place  // symlinks met so far, which may lead to directories
	follows   int      // how many symlinks were followed, or wait in links
	hints     []string // why documents in the root's own directory do not count
	head      []byte   // of the current document; what is made from it does not share its memory
	whole     bool     // see [Options]
	starved   error    // the first error that says the process ran out of something

	found    []*Pack
	problems []diag.Diagnostic
	out      memo.Writer       // writes the tree to remember
	names    map[string]string // one copy of each name that many packs have
	places   arena.Strings     // absolute paths of packs
	texts    arena.Strings     // of documents
	free     []Pack            // see newPack
}

// remember returns what to remember for the next scan. It keeps nothing else of s.
func (s *scanner) remember() *memo.Memo {
	m := s.out.Memo(s.dir)
	m.Reads, m.Steps, m.Unread = s.reads, s.steps, s.unread
	m.Lasts = s.stamps.Last()
	return m
}

// wasTouched reports whether something in a directory, or in its folder tools, may
// have changed.
func (s *scanner) wasTouched(dir string) bool {
	return s.touched == nil || s.touched[dir] || s.touched[dir+string(filepath.Separator)+"tools"]
}

// A place says where a directory is.
type place struct {
	at     string // relative to the root, by the path under which it was found; the id comes from this
	actual string // the same, symlinks resolved (of a link: all but the last)
	depth  int
	inPack bool    // below a pack
	aside  bool    // in a folder of a plugin that does not hold packs
	budget *budget // nil outside of packs
}

// below returns the place of the entry called name in p. full is its absolute path,
// symlinks resolved.
func (p place) below(name, full string) place {
	p.depth++
	same := p.at == p.actual
	length := len(name)
	if p.actual != "." {
		length += len(p.actual) + 1
	}
	p.actual = filepath.ToSlash(full[len(full)-length:]) // shares memory with full
	if same {
		p.at = p.actual
	} else {
		p.at = join(p.at, name)
	}
	return p
}

// join is path.Join for a clean path and a name.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

func (s *scanner) report(severity diag.Severity, code, file, message, hint string) {
	s.problems = append(s.problems, diag.Diagnostic{Code: code, Severity: severity, File: file, Message: message, Hint: hint})
}

// reportDir reports a directory by the path under which it was found.
func (s *scanner) reportDir(p place, code, message, hint string) {
	s.report(diag.Warning, code, filepath.Join(s.root.Dir, filepath.FromSlash(p.at)), message, hint)
}

func (s *scanner) scan() error {
	dir, err := s.files.Resolve(s.root.Dir)
	if err != nil {
		s.missing(err)
		return s.ctx.Err()
	}
	s.dir = dir
	if s.root.Inside != "" && !inside(dir, s.root.Inside) {
		s.report(diag.Warning, CodeLinkOutside, s.root.Dir, fmt.Sprintf("the folder leads out of %q, and is not looked at", s.root.Inside), "name the folder it leads to yourself, if you want its packs")
		return s.ctx.Err()
	}
	if info, err := s.files.Stat(dir); err != nil || !info.IsDir() {
		if err == nil {
			err = packfs.ErrNotDir
		}
		s.missing(err)
		return s.ctx.Err()
	}
	if s.root.Memory == nil {
		s.stamps = memo.NewStamper(dir, s.clock())
	}
	s.names = make(map[string]string)
	top := &visit{s: s, place: place{at: ".", actual: "."}, full: dir}
	defer top.close()
	s.old = new(memo.Memo)
	if !s.before.IsEmpty() && s.before.Dir == dir {
		s.old = s.before
		s.out = memo.NewWriter(s.old)
		top.remember(0)
	}
	if err := s.walk(top); err != nil || s.out.Size() == 0 {
		return err // it was already reported, or err says it
	}
	// Links are followed last, so that a pack that is also reachable without a link
	// gets its id from that path.
	for len(s.links) > 0 {
		links := s.links
		s.links = nil
		slices.SortFunc(links, func(a, b place) int { return strings.Compare(a.at, b.at) })
		for _, l := range links {
			if err := s.follow(top, l); err != nil {
				return err
			}
		}
	}
	if s.fullAt != nil {
		s.reportDir(*s.fullAt, CodeTooManyDirs, fmt.Sprintf("%s holds more than %d directories, and those from here on were not looked at", s.root.Dir, s.bounds.dirs), "name the folders that hold packs instead of one above them")
	}
	if s.deep > 0 {
		s.reportDir(s.deepAt, CodeTooDeep, fmt.Sprintf("%s, %d folders below %s, and what is in them was not looked at; this is the first", holders(s.deep), memo.MaxDepth, s.root.Dir), "name a folder further down as a folder of packs, or move its packs up")
	}
	if s.unread > 0 {
		s.report(diag.Warning, frontmatter.CodeUnread, s.root.Dir, diag.Count(s.unread, "document")+" of the folder could not be read yet, since others took too long",
			"a server reads them as soon as it has nothing else to do; put packs that are slow to read into a folder of packs of their own")
	}
	if s.root.Named && len(s.found) == 0 {
		message := "no pack here: neither this directory nor one below it has a SKILL.md, or another document with name and description in its frontmatter"
		if len(s.hints) > 0 {
			message += " (" + strings.Join(s.hints, "; ") + ")"
		}
		s.report(diag.Error, CodeNoPack, s.root.Dir, message, "write a SKILL.md that begins with a line ---, name:, description: and a line ---")
	}
	return nil
}

// isFull records the first directory that exceeded the bound.
func (s *scanner) isFull(p place) {
	if s.fullAt == nil {
		s.fullAt = &p
	}
}

// holders describes n folders that hold others, for the beginning of a sentence.
func holders(n int) string {
	if n == 1 {
		return "a folder holds others"
	}
	return fmt.Sprintf("%d folders hold others", n)
}

// inside reports whether a path with symlinks resolved is dir or below it.
func inside(path, dir string) bool {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(resolved, path)
	return err == nil && filepath.IsLocal(rel)
}

// missing reports a root that cannot be walked.
func (s *scanner) missing(err error) {
	s.note(err)
	severity := diag.Warning
	if s.root.Named {
		severity = diag.Error
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, packfs.ErrNotFound) {
		if s.root.Optional {
			return
		}
		s.report(severity, CodeRootMissing, s.root.Dir, "the folder of packs is not there", "make it, or remove it from the command line or configuration that names it")
		return
	}
	s.report(severity, CodeRootUnreadable, s.root.Dir, "the folder of packs cannot be read: "+packfs.Cause(err), "check that it is a directory and that you may read it")
}

// walk looks at one directory and those below it, and remembers them if they can be
// read. Its error is that of ended.
func (s *scanner) walk(v *visit) error {
	if err := s.ended(); err != nil {
		return err
	}
	p := v.place
	s.visited.add(p.actual)
	err := v.look()
	for try := 0; err == nil; try++ {
		if v.isPack = s.pack(v, try == maxTries-1); !v.vanished || try == maxTries-1 {
			break
		}
		v.again()
		err = v.look()
	}
	if err != nil {
		s.note(err)
		switch {
		case v.up == nil:
			s.missing(err)
		case byname.IsStrange(path.Base(p.at)):
			s.reportDir(p, CodeRootUnreadable, fmt.Sprintf("no path can have the name %q on every system, so nothing in this directory was looked at", path.Base(p.at)),
				"rename it: no colon, no backslash, and on Windows no space or dot at the end")
		case !errors.Is(err, packfs.ErrNotFound): // otherwise it was removed meanwhile
			s.reportDir(p, CodeRootUnreadable, "the directory cannot be read: "+packfs.Cause(err), "check that you may read it")
		}
		return nil
	}
	if v.now.Cut {
		s.reportDir(p, CodeTooManyDirs, fmt.Sprintf("the directory has more than %d entries, and the rest was left out", s.bounds.entries), "")
	}
	if v.isPack {
		p.inPack = true
		if p.depth > 0 && p.budget == nil { // nested packs share the budget
			p.budget = &budget{s.bounds.packDirs, s.bounds.packLinks, s.bounds.packSteps}
		}
	}
	s.loose(v)
	at := s.out.Begin(&v.now)
	if p.depth < memo.MaxDepth {
		if err := s.below(v, p); err != nil {
			return err
		}
	} else if holdDirs(v.now.Entries) {
		if s.deep++; s.deep == 1 {
			s.deepAt = p
		}
	}
	s.out.End(at)
	return nil
}

// below walks the directories in the one that v visits, whose place is p.
func (s *scanner) below(v *visit, p place) error {
	isPlugin := haveManifest(v.now.Entries)
	for e := range v.now.Entries.All() {
		if !e.IsDir() && e.Mode&fs.ModeSymlink == 0 || byname.IsSkipped(e.Name) {
			continue
		}
		full := v.path(e.Name)
		below := p.below(e.Name, full)
		if s.dirs++; s.dirs > s.bounds.dirs {
			s.isFull(below)
			return nil
		}
		if p.budget != nil {
			if p.budget.dirs--; p.budget.dirs < 0 {
				if p.budget.dirs == -1 { // the first time
					s.reportDir(p, CodeTooManyDirs, fmt.Sprintf("the pack that this folder belongs to has more than %d directories, and packs in the rest of them were not looked for", s.bounds.packDirs), "packs inside of packs are found sooner in a folder of their own")
				}
				return nil
			}
		}
		below.aside = p.aside || isPlugin && byname.IsOfPlugin(e.Name)
		if e.Mode&fs.ModeSymlink != 0 {
			if s.mayFollow(p) {
				s.links = append(s.links, below)
			}
			continue
		}
		sub := v.below(e.Name, below, full)
		if at, ok := v.subs.Find(e.Name); ok {
			sub.remember(at)
		}
		err := s.walk(sub)
		sub.close() // before the next is opened
		if err != nil {
			return err
		}
	}
	return nil
}

// follow walks the directory to which a link leads, if it is inside the root and was
// not walked before.
func (s *scanner) follow(top *visit, l place) error {
	target, err := s.files.Resolve(filepath.Join(s.dir, filepath.FromSlash(l.actual)))
	if err != nil {
		s.note(err)
		return nil // leads nowhere, or in circles
	}
	if info, err := s.files.Stat(target); err != nil || !info.IsDir() {
		s.note(err)
		return nil
	}
	rel, err := filepath.Rel(s.dir, target)
	if err != nil || !filepath.IsLocal(rel) {
		s.reportDir(l, CodeLinkOutside, "the link leads out of the folder of packs, and is not followed", "add the folder it leads to as a folder of packs of its own")
		return nil
	}
	rel = filepath.ToSlash(rel)
	if s.visited.has(rel) {
		return nil
	}
	l.actual = rel
	v := top.below(rel, l, target)
	defer v.close()
	if at, ok := s.old.Link(rel); ok {
		v.remember(at)
	}
	begin := s.out.Size()
	if err := s.walk(v); err != nil {
		return err
	}
	if s.out.Size() > begin {
		s.out.Link(rel, begin)
	}
	return nil
}

// files are where a scan looks: [packfs.System], or a [packfs.Memory].
type files interface {
	Resolve(path string) (string, error) // absolute, symlinks resolved
	Lstat(path string) (fs.FileInfo, error)
	Stat(path string) (fs.FileInfo, error)
	Open(dir string) (*packfs.Dir, error)
}

func (r *Root) files() files {
	if r.Memory != nil {
		return r.Memory
	}
	return packfs.System{}
}
