package packs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/byname"
	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/markdown"
)

// headLen is how much of an entry document is read at first; few have a longer block.
const headLen = 4 << 10

// pack reports whether the directory is a pack, and if so adds it to what was found.
// If its document vanished meanwhile, it notes that in the visit, and adds the pack
// only if this is the last try.
func (s *scanner) pack(v *visit, last bool) bool {
	at := v.place
	entry, others := s.entryOf(v.now.Entries, at.at)
	var doc frontmatter.Summary
	var problems []diag.Diagnostic
	if entry != "" {
		d := s.read(v, entry)
		if v.vanished && !last {
			return false
		}
		doc, problems = d.Doc, slices.Clone(d.Problems)
		if len(others) > 0 {
			problems = append(problems, diag.Diagnostic{
				Code: CodeEntryAmbiguous, Severity: diag.Warning, File: entry,
				Message: fmt.Sprintf("%q is also there, but is not read", others[0]), Hint: "keep one of them",
			})
		}
	} else {
		if at.inPack || at.aside {
			// Packs and plugins hold documents with frontmatter that are not
			// packs. In a folder below one, only a SKILL.md or the configuration
			// makes a pack.
			return false
		}
		for _, name := range others {
			d := s.read(v, name)
			if v.vanished && !last {
				return false
			}
			if needsTools(at, name) && !d.Tools && len(v.toolFiles()) == 0 {
				continue // a note or another page: many have frontmatter
			}
			if !d.Doc.IsZero() && !diag.HasErrors(d.Problems) {
				entry, doc, problems = name, d.Doc, slices.Clone(d.Problems)
				break
			}
			if at.at == "." {
				for _, p := range d.Problems {
					if p.Severity == diag.Error {
						s.hints = append(s.hints, p.File+": "+p.Message)
					}
				}
			}
		}
		if entry == "" {
			return false
		}
	}

	p := s.newPack()
	*p = Pack{
		Description: doc.Description(), Origin: s.origin, Trust: s.root.Trust.normal(), Entry: entry,
		Frontmatter: doc, Problems: problems, folder: v.now.Which,
	}
	p.Dir, p.path = s.keepPlace(v.full, at.at)
	p.Name = cmp.Or(doc.Name(), filepath.Base(p.Dir))
	if n := utf8.RuneCountInString(p.Description); n > s.origin.limits.Description {
		p.problem(diag.Info, CodeDescriptionShort, doc.DescriptionLine(),
			fmt.Sprintf("the description has %d characters, and a model sees the first %d", n, s.origin.limits.Description), "put what matters first")
	}
	for _, name := range p.Docs() {
		v.now.Always = true
		dir, err := v.open()
		if err == nil {
			var isDir bool
			if isDir, err = dir.IsDir(name); err == nil && !isDir {
				continue
			}
		}
		s.note(err)
		p.Problems = append(p.Problems, diag.Diagnostic{
			Code: CodeDocMissing, Severity: diag.Warning, File: name,
			Message: "the configuration names this document, but it is not a file of the pack", Hint: "correct docs: in the configuration",
		})
	}
	p.ToolFiles = v.toolFiles()
	if v.quiet {
		v.now.State = v.old.State
	} else {
		f := memo.NewFingerprint(s.stamps, s.files)
		if v.seen != nil && v.seenName == entry {
			f.AddInfo(v.seen)
		} else {
			f.Add(v.path(filepath.FromSlash(entry)))
		}
		for _, name := range p.ToolFiles {
			f.Add(v.path(filepath.FromSlash(name)))
		}
		v.now.State = f.Value()
		v.now.Always = v.now.Always || f.Linked
	}
	p.state = v.now.State
	s.found = append(s.found, p)
	return true
}

// ToolFilesNow returns the files that declare tools right now: some may be new since
// the scan. If the folder cannot be listed, it returns those that the scan found.
func (p *Pack) ToolFilesNow(dir *packfs.Dir) []string {
	if p.Loose {
		return p.ToolFiles
	}
	found, _, err := dir.NamesOf(maxEntries, byname.Counts)
	if err != nil {
		return p.ToolFiles
	}
	files := toolFilesHere(memo.EntriesOf(found))
	folder, _ := listTools(dir, memo.Stamper{}) // the pack may have none
	for _, name := range folder.Names {
		if len(files) < maxToolFiles {
			files = append(files, "tools/"+name)
		}
	}
	return files
}

// maxToolFiles is how many tool files of one pack are kept: more than any
// configuration allows tools, so that exceeding it is always reported.
const maxToolFiles = 10_001

// toolFilesHere returns the files that declare tools beside the entry document:
// tools.json, then every *.tool.json.
func toolFilesHere(here memo.Entries) []string {
	var files []string
	if _, ok := here.Find(formats.ToolsJSONFile); ok {
		files = append(files, formats.ToolsJSONFile)
	}
	for e := range here.All() {
		if !e.IsDir() && byname.IsToolPack(e.Name) && len(files) < maxToolFiles {
			files = append(files, strings.Clone(e.Name)) // a clone, so as not to keep the whole list in memory
		}
	}
	return files
}

func (p *Pack) problem(severity diag.Severity, code string, line int, message, hint string) {
	p.Problems = append(p.Problems, diag.Diagnostic{
		Code: code, Severity: severity, File: p.Entry, Line: line, Message: message, Hint: hint,
	})
}

// entryOf returns the document that makes the directory a pack regardless of its
// content: the configured one, or SKILL.md in any letter case. Then others are further
// spellings of SKILL.md. Without such a document, entry is empty and others are the
// documents that make the directory a pack if they have frontmatter.
func (s *scanner) entryOf(here memo.Entries, at string) (entry string, others []string) {
	if name := s.root.Entry[at]; name != "" {
		if clean, err := packfs.Clean(name); err == nil {
			name = clean
		}
		return name, nil
	}
	var skills []string
	var readme, first string
	for e := range here.All() {
		name := e.Name
		switch {
		case e.IsDir() || !byname.IsDocument(name):
		case byname.IsSkill(name):
			skills = append(skills, s.once(name))
		case name == "README.md":
			readme = s.once(name)
		case first == "":
			first = s.once(name)
		}
	}
	if i := slices.Index(skills, "SKILL.md"); i > 0 {
		skills[0], skills[i] = skills[i], skills[0]
	}
	if len(skills) > 0 {
		return skills[0], skills[1:]
	}
	for _, name := range []string{readme, first} {
		if name != "" {
			others = append(others, name)
		}
	}
	return "", others
}

// needsTools reports whether a document makes a folder a pack only if there are tools.
// That is so for any document except SKILL.md and README.md that is deeper than the
// root's own folders: a person put packs there, while further down there may be notes.
func needsTools(at place, name string) bool {
	return at.depth > 1 && !byname.IsSkill(name) && name != "README.md"
}

// read reads the frontmatter of a document. Next to an error, the record may still
// hold what could be read.
func (s *scanner) read(v *visit, name string) memo.Record {
	d := v.read(name, v.isPlain(name), func(dir *packfs.Dir) (memo.Record, os.FileInfo) {
		if s.head == nil {
			s.head = make([]byte, headLen)
		}
		head, info, err := dir.ReadHeadInfo(name, headLen, s.head)
		if err == nil && info.Size() > int64(len(head)) {
			if _, state := frontmatter.Find(charset.Text(head)); state == frontmatter.Unclosed {
				head, info, err = dir.ReadHeadInfo(name, s.origin.limits.Frontmatter+frontmatter.MarkerSlack, nil)
			}
		}
		if err != nil {
			s.note(err)
			return memo.Record{Problems: []diag.Diagnostic{unreadable(name, err)}}, nil
		}
		doc, problems := s.inspect(v, name, head)
		if size := info.Size(); size > s.origin.limits.EntryDoc {
			problems = append(problems, diag.Diagnostic{
				Code: CodeEntryTooLarge, Severity: diag.Error, File: name,
				Message: fmt.Sprintf("the entry document has %d bytes; the limit is %d", size, s.origin.limits.EntryDoc),
				Hint:    "move parts of it to files of their own, which are read when needed",
			})
		}
		r := memo.Record{Problems: problems}
		if doc != nil {
			r.Doc = doc.Summary(s.texts.Bytes)
			if needsTools(v.place, name) {
				all, err := dir.ReadAll(name, s.origin.limits.EntryDoc)
				s.note(err)
				r.Tools = err == nil && markdown.MentionsCommand(charset.Text(all))
			}
		}
		return r, info
	})
	if isUnread(d.Problems) {
		s.unread++
	}
	return d
}
