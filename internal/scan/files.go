package scan

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
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
		s.incomplete(at+".", "the folder cannot be read: "+cause(err))
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
			s.incomplete(full, "the folder cannot be read: "+cause(err))
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
		s.about(full, ruleLink, high, cause(err), nil)
	}
}

// name checks the name of a file or folder.
func (s *scanner) name(full, name string, isDir bool) {
	deceives := safetext.Line(name) != name || !utf8.ValidString(name) || lookalike(name) != ""
	if i := strings.LastIndexByte(name, '.'); !isDir && i > 0 {
		// A program that is named like a document: report.pdf.exe, notes.txt   .sh
		inner := strings.ToLower(path.Ext(strings.TrimRight(name[:i], " ")))
		deceives = deceives || programExt().MatchString(strings.ToLower(name[i:])) && documentExt().MatchString(inner)
	}
	if deceives {
		s.about(full, ruleName, high, safetext.Quote(cut(name, findings.MaxQuote)), []byte(name))
	}
	if !isDir {
		if why := autorun(full, name); why != "" {
			s.about(full, ruleAutorun, medium, why, []byte(full))
		}
	}
}

var (
	programExt = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\.(exe|scr|com|bat|cmd|ps1|vbs|js|hta|lnk|msi|jar|app|command|sh|pif)$`)
	})
	documentExt = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\.(pdf|docx?|xlsx?|pptx?|txt|jpe?g|png|gif|csv|md|rtf|mp[34]|zip)$`)
	})
)

// autorun names the program that runs or loads such a file automatically, or returns
// "".
func autorun(full, name string) string {
	lower := "/" + strings.ToLower(full)
	if strings.HasSuffix(lower, ".sample") {
		return ""
	}
	for _, is := range []struct{ part, by string }{
		{"/.git/hooks/", "git"}, {"/.husky/", "git"}, {"/.vscode/tasks.json", "an editor"}, {"/.vscode/settings.json", "an editor"}, {"/.vscode/mcp.json", "an editor"},
		{"/.claude/settings.json", "an agent"}, {"/.claude/settings.local.json", "an agent"}, {"/.mcp.json", "an agent"}, {"/.cursor/mcp.json", "an agent"}, {"/.cursor/rules/", "an agent"},
		{"/.codex/config.toml", "an agent"}, {"/.gemini/settings.json", "an agent"}, {"/.envrc", "a shell (direnv)"}, {"/.npmrc", "a package manager"}, {"/.yarnrc", "a package manager"},
		{"/.pre-commit-config.yaml", "git (pre-commit)"}, {"/sitecustomize.py", "Python"}, {"/usercustomize.py", "Python"}, {"/conftest.py", "a test runner"}, {"/autorun.inf", "Windows"}, {"/desktop.ini", "Windows"},
		{"/.gitmodules", "git"}, {"/.idea/", "an editor"}, {"/.devcontainer/", "an editor"},
	} {
		if strings.Contains(lower, is.part) {
			return name + " is for " + is.by
		}
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".pth":
		return name + " is for Python"
	case ".desktop", ".lnk", ".url", ".scf":
		return name + " starts a program when it is opened"
	}
	return ""
}

// file checks a regular file. If it changes while it is read, it is read once more.
func (s *scanner) file(dir *packfs.Dir, full, name string) {
	s.files++
	for try := range 2 {
		changed, err := s.read(dir, full, name)
		switch {
		case err != nil:
			s.incomplete(full, "the file cannot be read: "+cause(err))
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
	is := kindOf(src)
	switch {
	case is == kindProgram:
		rule := ruleProgram
		if !isProgramName(ext) {
			rule = ruleMagic
		}
		s.about(full, rule, high, "a compiled program", sum())
		return
	case is == kindArchive:
		s.archive(full, ext, src, sum())
		return
	case is == kindMedia:
		if isTextName(ext) {
			s.about(full, ruleMagic, high, "a picture, font or other media file", sum())
		}
		if ext == ".pdf" || bytes.HasPrefix(src, []byte("%PDF")) {
			s.pdf(full, src, sum())
		}
		return
	}
	text := decode(src)
	if !isText(text) {
		if !isTextName(ext) && langOf(name, src) == "" {
			if !strings.HasPrefix(full, ".git/") && !strings.Contains(full, "/.git/") {
				s.about(full, ruleOpaque, info, "", sum())
			}
			return
		}
		text = bytes.ReplaceAll(text, []byte{0}, nil)
	}
	if isMediaName(ext) && !bytes.HasPrefix(src, []byte("version https://git-lfs")) && len(bytes.TrimSpace(src)) > 0 {
		s.about(full, ruleMagic, high, "a text", sum())
	}
	if size > int64(len(src)) {
		severity := high
		if ext != "" && isDataName(ext) {
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
	lang := langOf(name, src)
	switch {
	case s.toolFiles[full]:
		if !f.json(src, meta) {
			f.plain(meta)
		}
	case isDocumentName(ext) || s.entries[full]:
		f.markdown(s.metadata(f, src, s.entries[full]))
	case lang != "" && ext != ".json":
		f.code(lang)
	case ext == ".json" || ext == ".jsonc" || ext == ".webmanifest":
		if !f.json(src, data) {
			f.plain(data)
		}
		s.packageJSON(f, name)
	case isDataName(ext) && !executable:
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

// A kind is a file type, recognized by the first bytes.
type kind int

const (
	kindUnknown kind = iota
	kindProgram
	kindArchive
	kindMedia
)

// kindOf recognizes programs and archives, which matter, and the most common media.
func kindOf(src []byte) kind {
	begins := func(marks ...string) bool {
		for _, m := range marks {
			if bytes.HasPrefix(src, []byte(m)) {
				return true
			}
		}
		return false
	}
	switch {
	case begins("\x7fELF", "\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\x00asm", "dex\n0", "BC\xc0\xde", "!<arch>\n"):
		return kindProgram
	case begins("MZ") && len(src) >= 64 && bytes.IndexByte(src[:64], 0) >= 0:
		return kindProgram
	case len(src) > 16 && src[2] == '\r' && src[3] == '\n' && src[1] <= 0x0f && src[1] >= 0x0a: // Python's compiled code
		return kindProgram
	case begins("PK\x03\x04", "PK\x05\x06", "\x1f\x8b", "BZh", "\xfd7zXZ\x00", "\x28\xb5\x2f\xfd", "7z\xbc\xaf\x27\x1c", "Rar!\x1a\x07", "MSCF\x00", "\xed\xab\xee\xdb", "LZIP", "\x04\x22\x4d\x18"):
		return kindArchive
	case len(src) > 262 && string(src[257:262]) == "ustar":
		return kindArchive
	case begins("\x89PNG", "\xff\xd8\xff", "GIF8", "%PDF", "wOFF", "wOF2", "OTTO", "\x00\x01\x00\x00\x00", "OggS", "ID3", "fLaC", "\x00\x00\x01\x00", "II*\x00", "MM\x00*", "SQLite format 3\x00") || begins("RIFF") && len(src) > 12:
		return kindMedia
	case len(src) > 12 && string(src[4:8]) == "ftyp":
		return kindMedia
	}
	return kindUnknown
}

// archive checks an archive, as far as possible without unpacking it.
func (s *scanner) archive(full, ext string, src []byte, sum []byte) {
	if bytes.HasPrefix(src, []byte("PK\x03\x04")) && len(src) > 8 && src[6]&1 != 0 || lockedZip(src) {
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

// lockedZip reports whether a member of a whole zip file is encrypted.
func lockedZip(src []byte) bool {
	z, err := zip.NewReader(bytes.NewReader(src), int64(len(src)))
	if err != nil {
		return false
	}
	for _, f := range z.File {
		if f.Flags&1 != 0 {
			return true
		}
	}
	return false
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
		if text := lowered(u.text); svgScript().MatchString(text) {
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

// isText reports whether a file is text: its beginning has no NUL and few non-text
// bytes.
func isText(src []byte) bool {
	head := src[:min(len(src), headSize)]
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	odd := 0
	for i := 0; i < len(head); {
		if ' ' <= head[i] && head[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && n == 1 || r < ' ' && !unicode.IsSpace(r) && r != 0x1b && r != 0x08 {
			odd++
		}
		i += n
	}
	return odd*20 <= len(head)
}

func isProgramName(ext string) bool {
	switch ext {
	case "", ".exe", ".dll", ".so", ".dylib", ".bin", ".o", ".a", ".node", ".wasm", ".class", ".pyd", ".pyc", ".pyo", ".com", ".scr", ".sys", ".elf", ".lib", ".ko", ".dex", ".deb", ".rlib":
		return true
	}
	return strings.HasPrefix(ext, ".so") || strings.Trim(ext, ".0123456789") == ""
}

func isDocumentName(ext string) bool {
	switch ext {
	case ".md", ".markdown", ".mdx", ".mdc", ".txt", ".rst", ".adoc", ".html", ".htm", ".prompt", ".text":
		return true
	}
	return false
}

func isDataName(ext string) bool {
	switch ext {
	case ".yaml", ".yml", ".toml", ".xml", ".csv", ".tsv", ".ini", ".cfg", ".conf", ".svg", ".css", ".scss", ".less", ".jsonl", ".ndjson", ".log", ".diff", ".patch", ".lock", ".sum", ".mod", ".proto", ".graphql", ".tex", ".bib", ".srt", ".vtt",
		".pem", ".crt", ".pub", ".geojson", ".ipynb", ".drawio", ".puml", ".mmd", ".dot", ".hcl", ".tfvars", ".xsd", ".xsl", ".rels", ".plist", ".po", ".properties", ".json5":
		return true
	}
	return false
}

func isMediaName(ext string) bool {
	switch ext {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".bmp", ".tiff", ".woff", ".woff2", ".ttf", ".otf", ".mp3", ".mp4", ".wav", ".ogg", ".pdf", ".docx", ".xlsx", ".pptx", ".zip", ".gz", ".tar", ".7z":
		return true
	}
	return false
}

func isTextName(ext string) bool { return isDocumentName(ext) || isDataName(ext) || ext == ".json" }

// cause returns the innermost message of an error about a file, without the path,
// which the finding has.
func cause(err error) string {
	if e, ok := errors.AsType[*packfs.PathError](err); ok {
		err = e.Reason
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}
