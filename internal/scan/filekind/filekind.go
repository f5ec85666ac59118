// Package filekind says what a file is, from its first bytes and its name: a program, an
// archive, a picture, a text, and which language a script is in; and what runs it by
// itself.
//
// It opens and unpacks nothing. Package scan decides which kinds are findings.
// Endings are in lower case, with the dot.
package filekind

import (
	"archive/zip"
	"bytes"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// headSize is how many bytes at the beginning determine whether a file is a text.
const headSize = 8 << 10

// A Kind is a file type, recognized by the first bytes.
type Kind int

// The kinds.
const (
	Unknown Kind = iota
	Program
	Archive
	Media
)

// Of recognizes programs and archives, which matter, and the most common media.
func Of(src []byte) Kind {
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
		return Program
	case begins("MZ") && len(src) >= 64 && bytes.IndexByte(src[:64], 0) >= 0:
		return Program
	case len(src) > 16 && src[2] == '\r' && src[3] == '\n' && src[1] <= 0x0f && src[1] >= 0x0a: // Python's compiled code
		return Program
	case begins("PK\x03\x04", "PK\x05\x06", "\x1f\x8b", "BZh", "\xfd7zXZ\x00", "\x28\xb5\x2f\xfd", "7z\xbc\xaf\x27\x1c", "Rar!\x1a\x07", "MSCF\x00", "\xed\xab\xee\xdb", "LZIP", "\x04\x22\x4d\x18"):
		return Archive
	case len(src) > 262 && string(src[257:262]) == "ustar":
		return Archive
	case begins("\x89PNG", "\xff\xd8\xff", "GIF8", "%PDF", "wOFF", "wOF2", "OTTO", "\x00\x01\x00\x00\x00", "OggS", "ID3", "fLaC", "\x00\x00\x01\x00", "II*\x00", "MM\x00*", "SQLite format 3\x00") || begins("RIFF") && len(src) > 12:
		return Media
	case len(src) > 12 && string(src[4:8]) == "ftyp":
		return Media
	}
	return Unknown
}

// IsLockedZip reports whether a member of a whole zip file is encrypted.
func IsLockedZip(src []byte) bool {
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

// IsText reports whether a file is text: its beginning has no NUL and few non-text
// bytes.
func IsText(src []byte) bool {
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

// IsProgramName reports whether compiled programs have this ending.
func IsProgramName(ext string) bool {
	switch ext {
	case "", ".exe", ".dll", ".so", ".dylib", ".bin", ".o", ".a", ".node", ".wasm", ".class", ".pyd", ".pyc", ".pyo", ".com", ".scr", ".sys", ".elf", ".lib", ".ko", ".dex", ".deb", ".rlib":
		return true
	}
	return strings.HasPrefix(ext, ".so") || strings.Trim(ext, ".0123456789") == ""
}

// IsDocumentName reports whether documents have this ending.
func IsDocumentName(ext string) bool {
	switch ext {
	case ".md", ".markdown", ".mdx", ".mdc", ".txt", ".rst", ".adoc", ".html", ".htm", ".prompt", ".text":
		return true
	}
	return false
}

// IsDataName reports whether texts that nothing runs have this ending.
func IsDataName(ext string) bool {
	switch ext {
	case ".yaml", ".yml", ".toml", ".xml", ".csv", ".tsv", ".ini", ".cfg", ".conf", ".svg", ".css", ".scss", ".less", ".jsonl", ".ndjson", ".log", ".diff", ".patch", ".lock", ".sum", ".mod", ".proto", ".graphql", ".tex", ".bib", ".srt", ".vtt",
		".pem", ".crt", ".pub", ".geojson", ".ipynb", ".drawio", ".puml", ".mmd", ".dot", ".hcl", ".tfvars", ".xsd", ".xsl", ".rels", ".plist", ".po", ".properties", ".json5":
		return true
	}
	return false
}

// IsMediaName reports whether media and archives have this ending.
func IsMediaName(ext string) bool {
	switch ext {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".bmp", ".tiff", ".woff", ".woff2", ".ttf", ".otf", ".mp3", ".mp4", ".wav", ".ogg", ".pdf", ".docx", ".xlsx", ".pptx", ".zip", ".gz", ".tar", ".7z":
		return true
	}
	return false
}

// IsTextName reports whether texts have this ending.
func IsTextName(ext string) bool { return IsDocumentName(ext) || IsDataName(ext) || ext == ".json" }

// LangOf returns the language of a script, from its name and first line, or "" if the
// file is not a script.
func LangOf(name string, head []byte) string {
	if line, _, _ := strings.Cut(string(head[:min(200, len(head))]), "\n"); strings.HasPrefix(line, "#!") {
		for _, is := range []struct{ word, lang string }{{"python", "python"}, {"node", "js"}, {"deno", "js"}, {"bun", "js"}, {"pwsh", "powershell"}, {"php", "php"}, {"lua", "lua"}} {
			if strings.Contains(line, is.word) {
				return is.lang
			}
		}
		return "shell"
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".sh", ".bash", ".zsh", ".ksh", ".fish", ".command", ".rb", ".pl", ".pm", ".mk", ".r", ".jl", ".ex", ".exs", ".tcl", ".awk", ".envrc", ".bats", ".cr", ".nix", ".tf":
		return "shell"
	case ".py", ".pyw", ".pyi", ".pth":
		return "python"
	case ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".vue", ".svelte":
		return "js"
	case ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".kt", ".kts", ".scala", ".swift", ".cs", ".dart", ".zig", ".groovy", ".gradle", ".m", ".sol":
		return "c"
	case ".ps1", ".psm1", ".psd1":
		return "powershell"
	case ".bat", ".cmd":
		return "batch"
	case ".vbs", ".applescript", ".scpt", ".ahk", ".hta", ".reg", ".wsf":
		return "text"
	case ".php":
		return "php"
	case ".lua", ".sql":
		return "lua"
	}
	switch strings.ToLower(name) {
	case "makefile", "gnumakefile", "dockerfile", "containerfile", "justfile", "rakefile", "gemfile", "vagrantfile", "jenkinsfile", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".zshenv":
		return "shell"
	}
	return ""
}

// LooksLikeDocument reports whether a program with the ending ext has another ending
// before it, inner, that is a document's.
func LooksLikeDocument(ext, inner string) bool {
	return programExt().MatchString(ext) && documentExt().MatchString(inner)
}

var (
	programExt = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\.(exe|scr|com|bat|cmd|ps1|vbs|js|hta|lnk|msi|jar|app|command|sh|pif)$`)
	})
	documentExt = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\.(pdf|docx?|xlsx?|pptx?|txt|jpe?g|png|gif|csv|md|rtf|mp[34]|zip)$`)
	})
)

// Autorun names the program that runs or loads such a file automatically, or returns
// "".
func Autorun(full, name string) string {
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
