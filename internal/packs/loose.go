package packs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/byname"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/loose"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

// holdsTools reports whether tool files in a directory outside of packs are packs
// themselves. That is so in the root itself, in folders called tools, anywhere below
// tools.d, and everywhere in a root for tools.
func (s *scanner) holdsTools(at string) bool {
	return s.root.Tools || at == "." || path.Base(at) == "tools" || slices.Contains(strings.Split(at, "/"), "tools.d")
}

// loose adds each tool file in a directory as a pack.
func (s *scanner) loose(v *visit) {
	if v.isPack || v.place.inPack || !s.holdsTools(v.place.at) {
		return
	}
	for e := range v.now.Entries.All() {
		if e.IsDir() || !byname.IsToolPack(e.Name) {
			continue
		}
		if s.dirs++; s.dirs > s.bounds.dirs { // each counts like a directory, which may be a pack
			s.isFull(v.place.below(e.Name, v.path(e.Name)))
			return
		}
		s.looseTool(e, v)
	}
}

func (s *scanner) looseTool(e memo.Entry, v *visit) {
	file := v.path(e.Name)
	v.vanished = false
	if e.Mode&fs.ModeSymlink != 0 {
		v.now.Always = true
		if !s.mayFollow(v.place) { // the walk follows it too, since it may lead to a directory
			return
		}
		// A pack's digest covers a file, but not a link to one.
		target, err := s.files.Resolve(file)
		if err != nil {
			s.note(err)
			return // leads nowhere, or in circles
		}
		if rel, err := filepath.Rel(s.dir, target); err != nil || !filepath.IsLocal(rel) {
			s.reportDir(v.place.below(e.Name, v.path(e.Name)), CodeLinkOutside, "the link leads out of the folder of packs, and is not followed", "add the folder it leads to as a folder of packs of its own")
			return
		}
		file = target
	}
	if s.visited.has(file) {
		return // it was already found, through a link or directly
	}
	s.visited.add(file)
	file, at := s.keepPlace(file, v.place.below(e.Name, v.path(e.Name)).at)
	name, _ := formats.CutToolPack(path.Base(at))
	p := s.newPack()
	*p = Pack{
		Name: name, Dir: file, Origin: s.origin,
		Trust: s.root.Trust.normal(), Entry: filepath.Base(file), Loose: true, path: at,
	}
	p.ToolFiles = []string{p.Entry}
	s.found = append(s.found, p)
	d := v.read(e.Name, e.Mode.IsRegular(), func(*packfs.Dir) (memo.Record, os.FileInfo) {
		src, info, err := p.source()
		if err != nil {
			s.note(err)
			return memo.Record{Problems: []diag.Diagnostic{{
				Code: CodeEntryUnreadable, Severity: diag.Error, File: p.Entry,
				Message: "the file cannot be read: " + packfs.Cause(err), Hint: "make it a plain file that you may read",
			}}}, nil
		}
		t, problems := loose.Parse(p.Entry, src, tools.Limits{})
		d := memo.Record{Problems: problems}
		if t != nil {
			d.Doc = loose.Document(t).Summary(s.texts.Bytes)
		}
		return d, info
	})
	if v.vanished {
		s.found = s.found[:len(s.found)-1]
		return
	}
	p.Problems = slices.Clone(d.Problems)
	f := memo.NewFingerprint(s.stamps, s.files)
	f.Add(file)
	p.state = f.Value()
	if !d.Doc.IsZero() {
		p.Name, p.Description, p.Frontmatter = d.Doc.Name(), d.Doc.Description(), d.Doc
	}
}

// source returns the bytes of a loose tool's file, and its file information from
// before they were read.
func (p *Pack) source() ([]byte, os.FileInfo, error) {
	dir, err := p.OpenDir()
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	info, err := dir.Stat(p.Entry)
	if err != nil {
		return nil, nil, err
	}
	src, err := dir.ReadAll(p.Entry, p.limits.ToolsFile)
	return src, info, err
}
