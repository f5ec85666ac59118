// Package scan examines a folder with packs and reports what a person should know before
// using them: texts aimed at a model, hidden text, commands that attack, what the packs'
// tools declare, and files that cannot be read.
//
// It reads and judges. It runs nothing, fetches nothing, asks nobody and stops nothing: the
// caller decides what a finding means, with a [findings.Policy] or without. It follows no links, and
// its time and memory are bounded; anything that a bound leaves out is a finding. It knows
// phrases and patterns, so a clean result does not prove that a pack is harmless: it misses
// text in languages other than English, new tricks, and programs that compute what they do.
// That is why calls of packs need approval and are confined.
package scan

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
)

// Bounds on one folder. They are far above the size of packs: one that can be added has at
// most 1,000 files and 100 MiB.
const (
	maxEntries = 50_000    // names below the folder
	maxDepth   = 64        // levels; no deeper tree has a digest
	maxBytes   = 256 << 20 // of all files that are read
	maxText    = 4 << 20   // bytes of one text
	headSize   = 8 << 10   // bytes that determine the type of a file
)

// ErrNoPack means that there is nothing to scan: a folder without packs is not clean.
var ErrNoPack = errors.New("no pack here")

// Folder scans all packs in and below a folder, or the *.tool.json at path. A pack inside
// another is part of the other's report, since it is part of its digest. If there is no
// pack, the error wraps [ErrNoPack].
func Folder(ctx context.Context, path string) ([]findings.Report, error) {
	catalog, err := Find(ctx, path)
	if err != nil {
		return nil, err
	}
	return All(ctx, catalog, path)
}

// Find finds all packs in and below a folder, or the *.tool.json at path, for [All].
func Find(ctx context.Context, path string) (*packs.Catalog, error) {
	return find(ctx, packs.Root{Dir: path})
}

// FindIn is [Find] for a folder in memory.
func FindIn(ctx context.Context, files *packfs.Memory) (*packs.Catalog, error) {
	return find(ctx, packs.Root{Dir: files.At, Memory: files})
}

func find(ctx context.Context, root packs.Root) (*packs.Catalog, error) {
	root.Source, root.Named, root.Tools = "named", true, true
	return packs.Scan(ctx, packs.Options{Roots: []packs.Root{root}, Patient: true})
}

// All is [Folder] for the packs that [Find] found at path.
func All(ctx context.Context, catalog *packs.Catalog, path string) ([]findings.Report, error) {
	actual, err := filepath.Abs(path)
	if err == nil {
		actual, err = filepath.EvalSymlinks(actual)
	}
	if err != nil && len(catalog.All()) > 0 {
		return nil, err
	}
	return reports(ctx, catalog, path, actual)
}

// AllIn is [All] for a folder in memory, in which [FindIn] found the packs.
func AllIn(ctx context.Context, catalog *packs.Catalog, files *packfs.Memory) ([]findings.Report, error) {
	return reports(ctx, catalog, files.At, files.At)
}

// reports scans the packs of a folder. path is its name in the reports, and actual its path
// without links.
func reports(ctx context.Context, catalog *packs.Catalog, path, actual string) ([]findings.Report, error) {
	all := catalog.All()
	if len(all) == 0 {
		for _, d := range catalog.Problems() {
			return nil, fmt.Errorf("scanning %q: %w: %s", path, ErrNoPack, d.Message)
		}
		return nil, fmt.Errorf("scanning %q: %w", path, ErrNoPack)
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *packs.Pack) int { return strings.Compare(a.Dir, b.Dir) })
	var reports []findings.Report
	for len(all) > 0 {
		n := 1 // this pack, and those inside it
		for n < len(all) && !all[0].Loose && strings.HasPrefix(all[n].Dir, all[0].Dir+string(filepath.Separator)) {
			n++
		}
		r, err := Packs(ctx, all[:n])
		if err != nil {
			return nil, err
		}
		r.Path = path
		if rel, err := filepath.Rel(actual, all[0].Dir); err == nil {
			r.Path = filepath.Join(path, rel)
		}
		if len(reports) == 0 {
			r.Findings = append(r.Findings, problems(catalog)...)
		}
		reports = append(reports, r)
		all = all[n:]
	}
	return reports, nil
}

// Of scans a pack of a catalog, including the packs inside it.
func Of(ctx context.Context, catalog *packs.Catalog, p *packs.Pack) (findings.Report, error) {
	all := []*packs.Pack{p}
	for _, other := range catalog.All() {
		if !p.Loose && strings.HasPrefix(other.Dir, p.Dir+string(filepath.Separator)) {
			all = append(all, other)
		}
	}
	return Packs(ctx, all)
}

// problems returns findings about what the search for packs left out.
func problems(catalog *packs.Catalog) []findings.Finding {
	c := findings.NewCollector()
	for _, d := range catalog.Problems() {
		switch d.Code {
		case packs.CodeRootUnreadable, packs.CodeTooManyDirs, packs.CodeTooDeep:
			c.Add(findings.Hit{Rule: ruleIncomplete, Severity: findings.RuleOf(ruleIncomplete).Severity, Path: ".", Quote: d.Message})
		}
	}
	return c.Findings()
}

// Packs scans the folder of the first of some packs, which contains the others. It returns an
// error if the folder cannot be opened, or if ctx ends.
func Packs(ctx context.Context, all []*packs.Pack) (findings.Report, error) {
	dir, err := all[0].OpenDir()
	if err != nil {
		return findings.Report{}, fmt.Errorf("scanning %q: %w", all[0].Dir, err)
	}
	defer dir.Close()
	s := &scanner{ctx: ctx, root: dir, Collector: findings.NewCollector(), search: newSearch(), entries: make(map[string]bool), toolFiles: make(map[string]bool)}
	r := findings.Report{Path: all[0].Dir}
	for _, p := range all {
		r.Packs = append(r.Packs, p.ID)
		below := ""
		if !p.Loose && p.Dir != all[0].Dir {
			if rel, err := filepath.Rel(all[0].Dir, p.Dir); err == nil {
				below = filepath.ToSlash(rel) + "/"
			}
		}
		if !p.Loose && p.Entry != "" {
			s.entries[below+p.Entry] = true
		}
		for _, name := range p.ToolFiles {
			s.toolFiles[below+name] = true
		}
		s.declared(p, below)
	}
	if all[0].Loose {
		s.loose(dir, filepath.Base(all[0].Dir))
	} else {
		s.folder(dir, "", 0)
	}
	if err := ctx.Err(); err != nil {
		return findings.Report{}, err
	}
	if s.search.over {
		s.incomplete(".", "scanning the texts takes too many steps")
	}
	r.Files, r.Findings = s.files, s.Findings()
	return r, nil
}

// A scanner scans one folder, once.
type scanner struct {
	ctx context.Context // of the call that made this
	*findings.Collector
	root      *packfs.Dir
	search    *search
	entries   map[string]bool // :: path of an entry document
	toolFiles map[string]bool // :: path of a file that declares tools

	names int   // entries so far
	files int   // files that were examined
	bytes int64 // of those files

	free []unit // reused for the next file
}

// report adds a finding about lines of a file.
func (s *scanner) report(f *file, h findings.Hit) {
	h.Path = f.path
	if h.Severity == critical { // the zero value stands for the rule's
		h.Severity = findings.RuleOf(h.Rule).Severity
	}
	if f.aside[h.Line] && (h.Rule == ruleEncodedCommand || h.Rule == ruleLookalike || h.Rule == ruleHiddenChars) {
		h.Severity = low
	}
	if h.Rule == ruleLookalike && h.Line > 0 && saysTwins().MatchString(f.lines[h.Line-1]) {
		h.Severity = low // it is what the line is about
	}
	if h.Matched == nil {
		h.Matched = f.bytesOf(h.Line, h.Line)
	}
	s.Add(h)
}

// about adds a finding about a whole file.
func (s *scanner) about(path, rule string, severity findings.Severity, quote string, matched []byte) {
	s.Add(findings.Hit{Rule: rule, Severity: severity, Path: path, Quote: quote, Matched: matched})
}

func (s *scanner) incomplete(path, why string) {
	s.about(path, ruleIncomplete, findings.RuleOf(ruleIncomplete).Severity, why, nil)
}

// declared examines a pack's declarations; below is its folder with a slash, or empty.
func (s *scanner) declared(p *packs.Pack, below string) {
	set, wrong, err := toolfiles.New(tools.Limits{}, "").Load(p)
	if err != nil {
		s.incomplete(below+p.Entry, "the tools cannot be read: "+err.Error())
		return
	}
	for _, d := range wrong {
		s.refused(d, below)
	}
	if set == nil {
		return
	}
	for _, t := range set.Tools {
		s.tool(t, below)
	}
}

// metadata examines the frontmatter of an entry document, and returns how many lines it has.
func (s *scanner) metadata(f *file, text []byte, isEntry bool) (lines int) {
	block, state := frontmatter.Find(text)
	if state != frontmatter.Closed {
		return 0
	}
	lines = strings.Count(string(text[:block.Body]), "\n")
	doc, _ := frontmatter.Inspect(f.path, text, frontmatter.MaxSize)
	if doc == nil || !isEntry {
		for i := range min(lines, len(f.lines)) {
			f.units = append(f.units, unit{zone: meta, text: letters.Normal(f.lines[i]), offsets: []int{0}, lines: []int{i + 1}})
		}
		return lines
	}
	s.keys(f, doc)
	return lines
}
