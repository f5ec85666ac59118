// Package filetype says whether a file is text, and what type it has, from its name and
// its first bytes. It reads no file, and does not say whether a content is what its type
// promises.
package filetype

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
)

// IsText reports whether data is valid UTF-8 without NUL. If more follows data, the last
// character may be incomplete.
func IsText(data []byte, more bool) bool {
	if bytes.IndexByte(data, 0) >= 0 {
		return false
	}
	if utf8.Valid(data) {
		return true
	}
	if !more {
		return false
	}
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if tail := data[len(data)-n:]; utf8.RuneStart(tail[0]) {
			return !utf8.FullRune(tail) && utf8.Valid(data[:len(data)-n])
		}
	}
	return false
}

// textTypes are the types of text files that cannot be recognised by their content.
var textTypes = map[string]string{ // :: extension in lower case → MIME type; never modified
	".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain",
	".json": "application/json", ".jsonl": "application/jsonl", ".ndjson": "application/jsonl",
	".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml",
	".xml": "application/xml", ".svg": "image/svg+xml", ".html": "text/html", ".htm": "text/html",
	".css": "text/css", ".csv": "text/csv", ".tsv": "text/tab-separated-values",
	".js": "text/javascript", ".mjs": "text/javascript", ".cjs": "text/javascript", ".jsx": "text/jsx",
	".ts": "text/x-typescript", ".tsx": "text/tsx", ".py": "text/x-python", ".sh": "application/x-sh",
	".bash": "application/x-sh", ".zsh": "application/x-sh", ".rb": "text/x-ruby", ".go": "text/x-go",
	".rs": "text/x-rust", ".java": "text/x-java", ".c": "text/x-c", ".h": "text/x-c",
	".cpp": "text/x-c++", ".hpp": "text/x-c++", ".cs": "text/x-csharp", ".php": "text/x-php",
	".pl": "text/x-perl", ".lua": "text/x-lua", ".swift": "text/x-swift", ".kt": "text/x-kotlin",
	".sql": "application/sql", ".ps1": "text/x-powershell", ".ini": "text/plain", ".cfg": "text/plain",
	".conf": "text/plain", ".log": "text/plain", ".rst": "text/x-rst", ".tex": "text/x-tex",
	".diff": "text/x-diff", ".patch": "text/x-diff",
}

// ByName returns the MIME type of a text file with this name; empty if the name does
// not tell.
func ByName(name string) string { return textTypes[strings.ToLower(path.Ext(name))] }

func Of(name string, head []byte, text bool) string {
	if text {
		if t := textTypes[strings.ToLower(path.Ext(name))]; t != "" {
			return t
		}
	}
	t, _, _ := strings.Cut(mimetype.Detect(head).String(), ";")
	if !text && strings.HasPrefix(t, "text/") {
		return "application/octet-stream"
	}
	return t
}
