// Package packname says what packs may be called: which names are valid, which are
// reserved, and which valid name is nearest to any other text.
//
// It knows names only. It finds no packs, and it does not decide which of two packs
// gets an id; package packs does.
package packname

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Workspace is the id of the chat's own files. No pack may have it.
const Workspace = "workspace"

// maxName is the longest name, and so the longest last segment of an id.
const maxName = 64

// IsValid reports whether name is a valid identifier for a pack:
// [a-z0-9]+(-[a-z0-9]+)*, 1 to 64 characters.
func IsValid(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' || name[len(name)-1] == '-' || strings.Contains(name, "--") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Nearest returns the valid name nearest to a folder's name. It is empty if that name
// is reserved, or if no character of the folder's name can be kept.
func Nearest(folder string) string {
	name := Slug(folder)
	if IsReserved(name) {
		return ""
	}
	return name
}

// Slug turns text into a valid name, or "" if none of its letters and digits has an
// ASCII form.
func Slug(text string) string {
	var b strings.Builder
	dash := false
	for _, r := range norm.NFKD.String(text) {
		r = unicode.ToLower(r)
		switch {
		case r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r): // the accent of the letter before
		default:
			dash = true
		}
		if b.Len() > maxName {
			break
		}
	}
	s := b.String()
	if len(s) > maxName {
		s = s[:maxName]
	}
	return strings.TrimRight(s, "-")
}

// Segments returns a folder's path, with slashes, as it is in an id.
func Segments(folder string) string {
	if !strings.ContainsFunc(folder, notPlain) {
		return folder
	}
	segments := strings.Split(folder, "/")
	for i, s := range segments {
		segments[i] = segment(s)
	}
	return strings.Join(segments, "/")
}

// segment returns a directory's name as a segment of an id. A name of letters and
// digits of any script, dots, underscores and hyphens is kept, in lower case and with
// runs of underscores collapsed: a double underscore separates a pack from its tool.
// Any other name becomes a slug. Combining marks are composed with their letter where
// Unicode has a character for both. Where it has none, they are not allowed, because
// stacked marks would paint over the text around an id.
func segment(name string) string {
	if composed := norm.NFC.String(strings.ToLower(name)); utf8.ValidString(name) && !strings.ContainsFunc(composed, notInSegment) {
		for strings.Contains(composed, "__") {
			composed = strings.ReplaceAll(composed, "__", "_")
		}
		return composed
	}
	return cmp.Or(Slug(name), "pack")
}

// notPlain reports whether a character of a path may change in an id.
func notPlain(r rune) bool {
	return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '/' || r == '.' || r == '-')
}

func notInSegment(r rune) bool {
	switch {
	case r == '.' || r == '_' || r == '-':
		return false
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r): // letters that nobody sees
		return true
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// toolNames are the server's own tools, with "_" for every separator. All begin with
// the same word, so only names with that prefix are looked up here.
var toolNames = []string{ // never modified
	"capability_packs_list", "capability_packs_open_docs", "capability_packs_read_file",
	"capability_packs_enable_tools", "capability_packs_call_tool", "capability_packs_exec_best_effort",
}

// separators are the characters that some clients replace in tool names.
var separators = strings.NewReplacer("-", "_", ".", "_")

// Refuse says why a pack with this id cannot have the name that its document gives it,
// or returns "".
func Refuse(name, id string) string {
	switch {
	case name == "":
		return "" // names that come from folders are never reserved
	case strings.EqualFold(id, Workspace):
		return fmt.Sprintf("the id %q is reserved for the chat's own files", id)
	case strings.Contains(name, "__"):
		return fmt.Sprintf("the name %q holds two underscores in a row, which part a pack from its tool in the names of tools", name)
	}
	for _, s := range []string{path.Base(name), path.Base(id)} {
		if why := reservedWord(s); why != "" && !strings.EqualFold(s, Workspace) {
			return why
		}
	}
	return ""
}

// IsReserved reports whether nothing may have this name.
func IsReserved(name string) bool { return reservedWord(name) != "" }

// reservedWord says why nothing may have this name, or returns "".
func reservedWord(name string) string {
	lower := strings.ToLower(name)
	switch {
	case lower == Workspace:
		return fmt.Sprintf("%q is reserved for the chat's own files", name)
	case strings.HasPrefix(lower, "capability_packs") || strings.HasPrefix(lower, "capability.packs"),
		strings.HasPrefix(lower, "capability") && slices.Contains(toolNames, separators.Replace(lower)):
		return fmt.Sprintf("%q is named like a tool of this program", name)
	}
	return ""
}
