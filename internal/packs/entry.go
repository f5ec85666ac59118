package packs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

const (
	// headLen is how much of an entry document is read at first; few have a
	// block that is longer.
	headLen = 4 << 10
	// markerSlack is room for the lines around a block of the largest size.
	markerSlack = 1 << 10
)

// pack adds the directory to what was found, when it is a pack, and reports
// whether it is.
func (s *scanner) pack(dir *packfs.Dir, entries []fs.DirEntry, at place) bool {
	entry, others := s.entryOf(entries, at.at)
	var doc *frontmatter.Document
	var problems []diag.Diagnostic
	if entry != "" {
		doc, problems = s.read(dir, entry)
		if len(others) > 0 {
			problems = append(problems, diag.Diagnostic{
				Code: CodeEntryAmbiguous, Severity: diag.Warning, File: entry,
				Message: fmt.Sprintf("%q is there too, and is not read", others[0]), Hint: "keep one of them",
			})
		}
	} else {
		if at.inPack {
			// Packs have documents with frontmatter of their own: in a folder
			// below one, only a SKILL.md or the configuration makes another.
			return false
		}
		for _, name := range others {
			var tried []diag.Diagnostic
			if doc, tried = s.read(dir, name); doc != nil && !diag.HasErrors(tried) {
				entry, problems = name, tried
				break
			}
			if at.at == "." {
				for _, p := range tried {
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

	folder, err := dir.Info()
	if err != nil {
		s.report(diag.Warning, CodeRootUnreadable, filepath.Join(s.root.Dir, filepath.FromSlash(at.at)), "the directory cannot be read: "+causeOf(err), "check that you may read it")
		return false
	}
	p := &Pack{
		Dir: filepath.Join(s.dir, filepath.FromSlash(at.actual)), Root: s.root.Dir, Source: s.root.Source,
		Trust: s.root.Trust.normal(), Entry: entry, Docs: s.root.Docs[at.at],
		Frontmatter: doc, Problems: problems, folder: folder, path: at.at, limits: s.limits,
	}
	p.Name = filepath.Base(p.Dir)
	if doc != nil {
		if doc.Name != "" {
			p.Name = doc.Name
		}
		p.Description, p.Tags, p.Modes = doc.Description, doc.Tags, doc.Modes
		if n := utf8.RuneCountInString(p.Description); n > s.limits.Description {
			p.problem(diag.Info, CodeDescriptionShort, doc.KeyLine("description"),
				fmt.Sprintf("the description has %d characters, and a model sees the first %d", n, s.limits.Description), "put what matters first")
		}
	}
	for _, name := range p.Docs {
		if isDir, err := dir.IsDir(name); err != nil || isDir {
			p.Problems = append(p.Problems, diag.Diagnostic{
				Code: CodeDocMissing, Severity: diag.Warning, File: name,
				Message: "the configuration names this document, and it is no file of the pack", Hint: "correct docs: in the configuration",
			})
		}
	}
	p.ToolFiles = toolFiles(dir, entries)
	s.found = append(s.found, p)
	return true
}

// toolFilesNow returns the files that declare tools at this moment: some may
// have come since the pack was found. When that cannot be told, they are those
// that were found.
func (p *Pack) toolFilesNow(dir *packfs.Dir) []string {
	if p.Loose {
		return p.ToolFiles
	}
	entries, _, err := dir.Names(maxEntries)
	if err != nil {
		return p.ToolFiles
	}
	return toolFiles(dir, entries)
}

// toolsJSON is the file that declares several tools.
const toolsJSON = "tools.json"

// maxToolFiles is how many files with tools of one pack are known: more than
// any configuration allows tools.
const maxToolFiles = 10_000

// toolFiles returns the files that declare tools: tools.json, then every
// *.tool.json beside the entry document and in tools/.
func toolFiles(dir *packfs.Dir, entries []fs.DirEntry) []string {
	var files []string
	if _, ok := slices.BinarySearchFunc(entries, toolsJSON, compareName); ok {
		files = append(files, toolsJSON)
	}
	add := func(below string, entries []fs.DirEntry) {
		for _, e := range entries {
			if isToolPack(e) && len(files) < maxToolFiles {
				files = append(files, below+e.Name())
			}
		}
	}
	add("", entries)
	if i, ok := slices.BinarySearchFunc(entries, "tools", compareName); ok && entries[i].Type()&(fs.ModeDir|fs.ModeSymlink) != 0 {
		if sub, err := dir.Sub("tools"); err == nil {
			defer sub.Close()
			if names, _, err := sub.Names(maxEntries); err == nil {
				add("tools/", names)
			}
		}
	}
	return files
}

func compareName(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) }

func (p *Pack) problem(severity diag.Severity, code string, line int, message, hint string) {
	p.Problems = append(p.Problems, diag.Diagnostic{
		Code: code, Severity: severity, File: p.Entry, Line: line, Message: message, Hint: hint,
	})
}

// entryOf returns the document that makes the directory a pack, whatever is in
// it: the configured one, or SKILL.md in any letter case. Otherwise, entry is
// empty, and others are the documents that make it one when their frontmatter
// says so. Beside an entry, others are more spellings of SKILL.md.
func (s *scanner) entryOf(entries []fs.DirEntry, at string) (entry string, others []string) {
	if name := s.root.Entry[at]; name != "" {
		if clean, err := packfs.Clean(name); err == nil {
			name = clean
		}
		return name, nil
	}
	var skills []string
	var readme, first string
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir() || !strings.EqualFold(path.Ext(name), ".md"):
		case strings.EqualFold(name, "SKILL.md"):
			skills = append(skills, name)
		case name == "README.md":
			readme = name
		case first == "":
			first = name
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

// read reads the frontmatter of a document. The Document may be there next to
// an error.
func (s *scanner) read(dir *packfs.Dir, name string) (*frontmatter.Document, []diag.Diagnostic) {
	head, size, err := dir.ReadHead(name, headLen)
	if err == nil && size > int64(len(head)) {
		if _, state := frontmatter.Find(head); state == frontmatter.Unclosed {
			head, size, err = dir.ReadHead(name, s.limits.Frontmatter+markerSlack)
		}
	}
	if err != nil {
		hint := "make it a plain file inside the pack that you may read"
		if errors.Is(err, packfs.ErrNotFound) {
			hint = "correct entry: in the configuration, or the link that leads nowhere"
		}
		return nil, []diag.Diagnostic{{
			Code: CodeEntryUnreadable, Severity: diag.Error, File: name,
			Message: "the entry document cannot be read: " + causeOf(err), Hint: hint,
		}}
	}
	doc, problems := frontmatter.Inspect(name, head, s.limits.Frontmatter)
	if size > s.limits.EntryDoc {
		problems = append(problems, diag.Diagnostic{
			Code: CodeEntryTooLarge, Severity: diag.Error, File: name,
			Message: fmt.Sprintf("the entry document has %d bytes, and the limit is %d", size, s.limits.EntryDoc),
			Hint:    "move parts of it to files of their own, which are read when needed",
		})
	}
	return doc, problems
}
