package packs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// Bounds of the walk through one root.
const (
	maxDepth   = 6
	maxDirs    = 200_000
	maxEntries = 100_000 // of one directory
)

// Scan looks through the roots and describes what it finds. The only error is
// that ctx ended; whatever is wrong with a root or a pack is a diagnostic, and
// keeps nothing else from being found.
func Scan(ctx context.Context, opts Options) (*Catalog, error) {
	opts.Limits = opts.Limits.withDefaults()
	opts.Mode = cmp.Or(opts.Mode, modeGlobal)
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if opts.loader == nil {
		opts.loader = &tools.Loader{}
	}
	c := &Catalog{}
	for i := range opts.Roots {
		s := &scanner{ctx: ctx, root: &opts.Roots[i], limits: opts.Limits, loader: opts.loader, visited: make(map[string]bool)}
		if err := s.scan(); err != nil {
			return nil, err
		}
		log.Debug("scanned root", "dir", s.root.Dir, "packs", len(s.found), "directories", s.dirs)
		assignIDs(s.found)
		c.add(&opts, s)
	}
	c.finish(&opts)
	return c, nil
}

// scanner walks one root.
type scanner struct {
	ctx     context.Context // of the one call of Scan that made this
	root    *Root
	limits  Limits
	loader  *tools.Loader
	dir     string // the root's directory, absolute, symlinks resolved
	dirs    int
	full    bool            // maxDirs was reached
	visited map[string]bool // :: directory relative to dir, or absolute path of a loose tool, symlinks resolved → true
	links   []place         // symlinks met on the way, which may lead to directories
	hints   []string        // why documents of the root's own directory do not count

	found    []*Pack
	problems []diag.Diagnostic
}

// place is where a directory is.
type place struct {
	at     string // relative to the root, by the way it was found; its id comes from this
	actual string // the same, symlinks resolved (of a link: all but the last)
	depth  int
	inPack bool // below a pack
}

// below returns the place of the directory name in p.
func (p place) below(name string) place {
	return place{path.Join(p.at, name), path.Join(p.actual, name), p.depth + 1, p.inPack}
}

func (s *scanner) report(severity diag.Severity, code, file, message, hint string) {
	s.problems = append(s.problems, diag.Diagnostic{Code: code, Severity: severity, File: file, Message: message, Hint: hint})
}

func (s *scanner) scan() error {
	dir, err := filepath.Abs(s.root.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		s.missing(err)
		return s.ctx.Err()
	}
	s.dir = dir
	if s.root.Inside != "" && !inside(dir, s.root.Inside) {
		s.report(diag.Warning, CodeLinkOutside, s.root.Dir, fmt.Sprintf("the folder leads out of %q, and is not looked at", s.root.Inside), "name the folder it leads to yourself, if you want its packs")
		return s.ctx.Err()
	}
	top, err := packfs.Open(dir)
	if err != nil {
		s.missing(err)
		return s.ctx.Err()
	}
	defer top.Close()

	if err := s.walk(top, place{at: ".", actual: "."}); err != nil {
		return err
	}
	// Links come after the directories they may lead to, so that a pack that has
	// a path of its own goes by it.
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
	if s.full {
		s.report(diag.Warning, CodeTooManyDirs, s.root.Dir, fmt.Sprintf("the folder holds more than %d directories, and the rest was left out", maxDirs), "name the folders that hold packs instead of one above them")
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
	severity := diag.Warning
	if s.root.Named {
		severity = diag.Error
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, packfs.ErrNotFound) {
		s.report(severity, CodeRootMissing, s.root.Dir, "the folder of packs is not there", "make it, or remove it from the command line or configuration that names it")
		return
	}
	s.report(severity, CodeRootUnreadable, s.root.Dir, "the folder of packs cannot be read: "+causeOf(err), "check that it is a directory and that you may read it")
}

// walk looks at one directory and those below.
func (s *scanner) walk(dir *packfs.Dir, p place) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.visited[p.actual] = true
	entries, truncated, err := dir.Names(maxEntries)
	if err != nil {
		s.report(diag.Warning, CodeRootUnreadable, filepath.Join(s.root.Dir, filepath.FromSlash(p.at)), "the directory cannot be read: "+causeOf(err), "check that you may read it")
		return nil
	}
	if truncated {
		s.report(diag.Warning, CodeTooManyDirs, filepath.Join(s.root.Dir, filepath.FromSlash(p.at)), fmt.Sprintf("the directory has more than %d entries, and the rest was left out", maxEntries), "")
	}
	if s.pack(dir, entries, p) {
		p.inPack = true
	}
	s.loose(entries, p)
	if p.depth == maxDepth {
		return nil
	}
	for _, e := range entries {
		mode, name := e.Type(), e.Name()
		if !mode.IsDir() && mode&fs.ModeSymlink == 0 || skipped(name) {
			continue
		}
		if s.dirs++; s.dirs > maxDirs {
			s.full = true
			return nil
		}
		if mode&fs.ModeSymlink != 0 {
			s.links = append(s.links, p.below(name))
			continue
		}
		if err := s.sub(dir, name, p.below(name)); err != nil {
			return err
		}
	}
	return nil
}

// sub walks a directory below dir, which is closed again before the next one
// is opened.
func (s *scanner) sub(dir *packfs.Dir, name string, p place) error {
	sub, err := dir.Sub(name)
	if errors.Is(err, packfs.ErrNotFound) {
		return nil // gone since
	}
	if err != nil {
		s.report(diag.Warning, CodeRootUnreadable, filepath.Join(s.root.Dir, filepath.FromSlash(p.at)), "the directory cannot be read: "+causeOf(err), "check that you may read it")
		return nil
	}
	defer sub.Close()
	return s.walk(sub, p)
}

// follow walks the directory that a link leads to, when it is inside the root
// and was not walked before.
func (s *scanner) follow(top *packfs.Dir, l place) error {
	full := filepath.Join(s.dir, filepath.FromSlash(l.actual))
	target, err := filepath.EvalSymlinks(full)
	if err != nil {
		return nil // leads nowhere, or in circles
	}
	if info, err := os.Stat(target); err != nil || !info.IsDir() {
		return nil
	}
	rel, err := filepath.Rel(s.dir, target)
	if err != nil || !filepath.IsLocal(rel) {
		s.report(diag.Warning, CodeLinkOutside, filepath.Join(s.root.Dir, filepath.FromSlash(l.at)), "the link leads out of the folder of packs, and is not followed", "add the folder it leads to as a folder of packs of its own")
		return nil
	}
	rel = filepath.ToSlash(rel)
	if s.visited[rel] {
		return nil
	}
	l.actual = rel
	return s.sub(top, rel, l)
}

// skipped reports whether no pack is looked for in a directory of that name.
func skipped(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// causeOf returns the innermost words of err: the path is said beside them.
func causeOf(err error) string {
	if e, ok := errors.AsType[*packfs.PathError](err); ok {
		err = e.Reason
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}
