package scan

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/scan/filekind"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
)

// folder checks a folder's contents recursively. at is its path with a slash, or
// empty.
func (s *scanner) folder(dir *packfs.Dir, at string, depth int) {
	if depth > maxDepth {
		s.incomplete(at, "folders are nested too deeply")
		return
	}
	entries, truncated, err := dir.Names(maxEntries - s.names)
	if err != nil {
		s.incomplete(at+".", "the folder cannot be read: "+packfs.Cause(err))
		return
	}
	if truncated || s.names+len(entries) > maxEntries {
		s.incomplete(at+".", "there are too many files")
	}
	s.names += len(entries)
	for _, e := range entries {
		if s.ctx.Err() != nil {
			return
		}
		s.entry(dir, at, e, depth)
	}
}

func (s *scanner) entry(dir *packfs.Dir, at string, e fs.DirEntry, depth int) {
	name, full := e.Name(), at+e.Name()
	s.name(full, name, e.IsDir())
	switch mode := e.Type(); {
	case mode.IsDir():
		sub, err := dir.Sub(name)
		if err != nil {
			s.incomplete(full, "the folder cannot be read: "+packfs.Cause(err))
			return
		}
		defer sub.Close()
		s.folder(sub, full+"/", depth+1)
	case mode&fs.ModeSymlink != 0:
		s.link(full)
	case mode.IsRegular():
		s.file(dir, full, name)
	default:
		s.about(full, ruleSpecial, high, mode.String(), nil)
	}
}

// link checks where a link leads. The target of one that stays in the folder is checked
// anyway.
func (s *scanner) link(full string) {
	if _, err := s.root.IsDir(full); err != nil && !errors.Is(err, packfs.ErrNotFound) {
		s.about(full, ruleLink, high, packfs.Cause(err), nil)
	}
}

// name checks the name of a file or folder.
func (s *scanner) name(full, name string, isDir bool) {
	deceives := safetext.Line(name) != name || !utf8.ValidString(name) || letters.Lookalike(name) != ""
	if i := strings.LastIndexByte(name, '.'); !isDir && i > 0 {
		// A program that is named like a document: report.pdf.exe, notes.txt   .sh
		inner := strings.ToLower(path.Ext(strings.TrimRight(name[:i], " ")))
		deceives = deceives || filekind.LooksLikeDocument(strings.ToLower(name[i:]), inner)
	}
	if deceives {
		s.about(full, ruleName, high, safetext.Quote(cut(name, findings.MaxQuote)), []byte(name))
	}
	if !isDir {
		if why := filekind.Autorun(full, name); why != "" {
			s.about(full, ruleAutorun, medium, why, []byte(full))
		}
	}
}

// file checks a regular file. If it changes while it is read, it is read once more.
func (s *scanner) file(dir *packfs.Dir, full, name string) {
	s.files++
	for try := range 2 {
		changed, err := s.read(dir, full, name)
		switch {
		case err != nil:
			s.incomplete(full, "the file cannot be read: "+packfs.Cause(err))
			return
		case !changed:
			return
		case try == 1:
			s.incomplete(full, "the file changed while it was read")
		}
	}
}

func (s *scanner) read(dir *packfs.Dir, full, name string) (changed bool, err error) {
	before, err := dir.Stat(name) // which refuses links
	if err != nil {
		return false, err
	}
	if before.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		s.about(full, ruleSetID, high, before.Mode().String(), []byte(before.Mode().String()))
	}
	want := min(before.Size(), maxText)
	if s.bytes+want > maxBytes {
		s.incomplete(full, "the files are too large in total")
		return false, nil
	}
	src, info, err := dir.ReadHeadInfo(name, int(want), nil)
	if err != nil {
		return false, err
	}
	s.bytes += int64(len(src))
	after, err := dir.Stat(name)
	if err != nil {
		return false, err
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) || info.Size() != before.Size() || int64(len(src)) != want {
		return true, nil
	}
	s.content(full, name, src, info.Size(), info.Mode()&0o111 != 0)
	return false, nil
}

// content checks a file's content; src is its beginning.
func (s *scanner) content(full, name string, src []byte, size int64, executable bool) {
	sum := func() []byte {
		of := sha256.Sum256(src)
		return of[:]
	}
	ext := strings.ToLower(path.Ext(name))
	is := filekind.Of(src)
	switch {
	case is == filekind.Program:
		rule := ruleProgram
		if !filekind.IsProgramName(ext) {
			rule = ruleMagic
		}
		s.about(full, rule, high, "a compiled program", sum())
		return
	case is == filekind.Archive:
		s.archive(full, ext, src, sum())
		return
	case is == filekind.Media:
		if filekind.IsTextName(ext) {
			s.about(full, ruleMagic, high, "a picture, font or other media file", sum())
		}
		if ext == ".pdf" || bytes.HasPrefix(src, []byte("%PDF")) {
			s.pdf(full, src, sum())
		}
		return
	}
	text := letters.Decode(src)
	if !filekind.IsText(text) {
		if !filekind.IsTextName(ext) && filekind.LangOf(name, src) == "" {
			if !strings.HasPrefix(full, ".git/") && !strings.Contains(full, "/.git/") {
				s.about(full, ruleOpaque, info, "", sum())
			}
			return
		}
		text = bytes.ReplaceAll(text, []byte{0}, nil)
	}
	if filekind.IsMediaName(ext) && !bytes.HasPrefix(src, []byte("version https://git-lfs")) && len(bytes.TrimSpace(src)) > 0 {
		s.about(full, ruleMagic, high, "a text", sum())
	}
	if size > int64(len(src)) {
		severity := high
		if ext != "" && filekind.IsDataName(ext) {
			severity = medium
		}
		s.about(full, ruleIncomplete, severity, "the text is larger than 4 MiB, so only its beginning was scanned", sum())
	}
	s.text(full, name, ext, bytes.TrimPrefix(text, []byte("\ufeff")), executable)
}

// text checks a text.
func (s *scanner) text(full, name, ext string, src []byte, executable bool) {
	f := newFile(full, src)
	f.units = s.free[:0]
	defer func() { s.free = f.units }()
	lang := filekind.LangOf(name, src)
	switch {
	case s.toolFiles[full]:
		if !f.json(src, meta) {
			f.plain(meta)
		}
	case filekind.IsDocumentName(ext) || s.entries[full]:
		f.markdown(s.metadata(f, src, s.entries[full]))
	case lang != "" && ext != ".json":
		f.code(lang)
	case ext == ".json" || ext == ".jsonc" || ext == ".webmanifest":
		if !f.json(src, data) {
			f.plain(data)
		}
		s.packageJSON(f, name)
	case filekind.IsDataName(ext) && !executable:
		f.plain(data)
		s.markup(f, ext)
	default: // unknown extension: a shell runs any file
		f.code("shell")
		s.markup(f, ext)
	}
	s.hidden(f)
	s.encoded(f)
	s.secrets(f)
	s.units(f)
}

// units searches all units of a file.
func (s *scanner) units(f *file) {
	var seen signs
	defer s.flow(f, &seen)
	for i := range f.units {
		u := &f.units[i]
		s.search.find(u, func(p *pattern, from, to int, severity findings.Severity) {
			first, last := u.lineAt(from), u.lineAt(max(from, to-1))
			if p.sign != noSign {
				if seen[p.sign] == 0 {
					seen[p.sign] = first
				}
				return
			}
			around := u.text[max(0, from-20):min(len(u.text), to+60)]
			s.Add(findings.Hit{Rule: p.ruleIn(u), Severity: severity, Path: f.path, Line: first, Tool: u.tool, Quote: around, Matched: f.bytesOf(first, last)})
		})
		if s.ctx.Err() != nil {
			return
		}
	}
}

// ruleIn returns the rule for a match in a unit. Quotations have their own rule,
// which can be switched off separately.
func (p *pattern) ruleIn(u *unit) string {
	if p.prompt && u.zone == quoted {
		return ruleInjectionFenced
	}
	return p.rule
}

// flow looks for a script that reads secrets in one line and sends something in
// another, or that connects to a host and gives it a shell.
func (s *scanner) flow(f *file, seen *signs) {
	say := func(rule string, severity findings.Severity, at sign) {
		line := seen[at]
		s.Add(findings.Hit{Rule: rule, Severity: severity, Path: f.path, Line: line, Quote: f.lines[line-1], Matched: f.bytesOf(line, line)})
	}
	if seen[readsSecrets] > 0 && seen[sendsData] > 0 {
		say(ruleCredentialSend, critical, readsSecrets)
	}
	if seen[givesShell] > 0 && seen[connects] > 0 {
		say(ruleReverseShell, critical, givesShell)
	}
	if seen[savesDownload] > 0 && seen[makesProgram] > seen[savesDownload] {
		say(ruleFetchRun, medium, makesProgram) // it may be a different file
	}
}

// archive checks an archive, as far as possible without unpacking it.
func (s *scanner) archive(full, ext string, src []byte, sum []byte) {
	if bytes.HasPrefix(src, []byte("PK\x03\x04")) && len(src) > 8 && src[6]&1 != 0 || filekind.IsLockedZip(src) {
		s.about(full, ruleLockedArchive, high, "an archive with a password", sum)
		return
	}
	switch ext {
	case ".docx", ".xlsx", ".pptx", ".docm", ".xlsm", ".pptm", ".dotx", ".dotm", ".xltx", ".potx", ".odt", ".ods", ".odp", ".epub", ".thmx", ".vsdx":
		if bytes.Contains(src, []byte("vbaProject.bin")) {
			s.about(full, ruleMacros, high, "macros", sum)
		}
		return
	case ".zip", ".gz", ".tgz", ".tar", ".bz2", ".tbz", ".xz", ".txz", ".zst", ".7z", ".rar", ".cab", ".lz", ".lz4", ".skill", ".mcpb", ".dxt", ".whl", ".gem", ".crate", ".nupkg", ".xpi", ".vsix", ".rpm", ".deb", ".br":
		s.about(full, ruleArchive, medium, "an archive", sum)
	case ".jar", ".war", ".apk", ".aar", ".ipa", ".egg", ".pyz", ".xap":
		s.about(full, ruleProgram, high, "an archive of compiled code", sum)
	default:
		s.about(full, ruleMagic, high, "an archive", sum)
	}
}

// pdf looks for actions that run when a document is opened.
func (s *scanner) pdf(full string, src []byte, sum []byte) {
	for _, mark := range []string{"/JavaScript", "/Launch", "/EmbeddedFile"} {
		if bytes.Contains(src, []byte(mark)) {
			s.about(full, ruleActive, medium, mark, sum)
			return
		}
	}
}

// markup looks for scripts in a picture.
func (s *scanner) markup(f *file, ext string) {
	if ext != ".svg" {
		return
	}
	for i := range f.units {
		u := &f.units[i]
		if text := letters.Lower(u.text); svgScript().MatchString(text) {
			s.report(f, findings.Hit{Rule: ruleActive, Line: u.lines[0], Quote: svgScript().FindString(text)})
		}
	}
}

var svgScript = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<script\b|<foreignobject\b|\son(load|click|error|mouseover|begin)\s*=|javascript:`)
})

// packageJSON looks for scripts that a package manager runs on installation.
func (s *scanner) packageJSON(f *file, name string) {
	if name != "package.json" {
		return
	}
	for i := range f.units {
		if u := &f.units[i]; installScript().MatchString(f.lines[u.lines[0]-1]) {
			s.report(f, findings.Hit{Rule: ruleAutorun, Line: u.lines[0], Quote: f.lines[u.lines[0]-1]})
		}
	}
}

var installScript = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(preinstall|install|postinstall|prepare|prepublish)"\s*:\s*"`)
})
