package packs

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

// maxName is the longest name, and so the longest last segment of an id.
const maxName = 64

// ValidName reports whether name is a valid identifier for a pack:
// [a-z0-9]+(-[a-z0-9]+)*, 1 to 64 characters.
func ValidName(name string) bool {
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

// NameFor returns the valid name nearest to a folder's name. It is empty if that name
// is reserved, or if no character of the folder's name can be kept.
func NameFor(folder string) string {
	name := slug(folder)
	if reservedWord(name) != "" {
		return ""
	}
	return name
}

// slug turns text into a valid name, or "" if none of its letters and digits has an
// ASCII form.
func slug(text string) string {
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
	return cmp.Or(slug(name), "pack")
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

// dirName returns the name that a pack gets from its directory, or from its file if it
// is a loose tool.
func (p *Pack) dirName() string {
	base := filepath.Base(p.Dir)
	if p.path != "." {
		base = path.Base(p.path)
	}
	if p.Loose {
		base, _ = formats.CutToolPack(base)
	}
	name := cmp.Or(slug(base), "pack")
	if reservedWord(name) != "" && (name != workspaceID || p.Loose || !strings.Contains(p.path, "/")) {
		name += "-pack"
	}
	return name
}

// hasPlainID reports whether the id equals the path without a file ending.
func (p *Pack) hasPlainID() bool {
	name, _ := formats.CutToolPack(p.path)
	return strings.EqualFold(name, p.ID)
}

// inParent returns the id of a pack called name beside p. Ids of loose tools leave out
// the folders that the tools are sorted into.
func (p *Pack) inParent(name string) string {
	parent := path.Dir(p.path)
	if parent == "." || p.Loose {
		return name
	}
	if !strings.ContainsFunc(parent, notPlain) {
		return parent + "/" + name
	}
	segments := strings.Split(parent, "/")
	for i, s := range segments {
		segments[i] = segment(s)
	}
	return strings.Join(segments, "/") + "/" + name
}

// assignIDs assigns the ids of all packs in one root. It sorts found by path; the
// result does not depend on the order before.
func assignIDs(found []*Pack) {
	slices.SortFunc(found, func(a, b *Pack) int { return strings.Compare(a.path, b.path) })
	taken := make(map[string]*Pack, len(found)) // :: id in lower case → the pack that has it
	rivals := make(map[string][]*Pack)          // :: id in lower case → packs that compete for it, by path; only where there are several
	for _, p := range found {
		name := p.Name
		switch {
		case p.Frontmatter.Name() == "":
			name = p.dirName()
		case !ValidName(name):
			if name = slug(name); name == "" {
				name = p.dirName()
			}
			if !p.Loose { // tool names have their own rules
				p.problem(diag.Warning, CodeNameSlugged, p.Frontmatter.NameLine(),
					fmt.Sprintf("%q is not a valid name, and the pack goes by %q", p.Name, name), "use lower-case letters, digits and single hyphens, at most 64")
			}
		}
		if p.ID = p.inParent(name); p.ID == p.path {
			p.ID = p.path // share the string
		}
		key := strings.ToLower(p.ID)
		if first := taken[key]; first == nil {
			taken[key] = p
		} else {
			if rivals[key] == nil {
				rivals[key] = []*Pack{first}
			}
			rivals[key] = append(rivals[key], p)
		}
	}

	var losers []*Pack
	for key, packs := range rivals {
		keeper := packs[0]
		if i := slices.IndexFunc(packs, (*Pack).hasPlainID); i >= 0 {
			keeper = packs[i]
		}
		taken[key] = keeper
		for _, p := range packs {
			if p != keeper {
				losers = append(losers, p)
			}
		}
	}
	slices.SortFunc(losers, func(a, b *Pack) int { return strings.Compare(a.path, b.path) })
	next := make(map[string]int) // :: id in lower case → the number to try next; lower ones are taken
	for _, p := range losers {
		wants := p.ID
		own := p.inParent(p.dirName())
		p.ID = own
		key := strings.ToLower(own)
		n := max(2, next[key])
		for ; taken[strings.ToLower(p.ID)] != nil; n++ {
			p.ID = fmt.Sprintf("%s-%d", own, n)
		}
		next[key] = n
		taken[strings.ToLower(p.ID)] = p
		p.problem(diag.Warning, CodeIDCollision, 0,
			fmt.Sprintf("the pack in %q has the id %q as well, so this one goes by %q", taken[strings.ToLower(wants)].Dir, wants, p.ID), "give one of them another name")
	}
	for _, p := range found {
		if why := reserved(p); why != "" {
			hint := "write another name: in this document"
			if p.Loose {
				hint = "give the tool in this file another name"
			}
			p.problem(diag.Error, CodeIDReserved, p.Frontmatter.NameLine(), why, hint)
		}
	}
}

// toolNames are the server's own tools, with "_" for every separator. All begin with
// the same word, so only names with that prefix are looked up here.
var toolNames = []string{ // never modified
	"capability_packs_list", "capability_packs_open_docs", "capability_packs_read_file",
	"capability_packs_enable_tools", "capability_packs_call_tool", "capability_packs_exec_best_effort",
}

// separators are the characters that some clients replace in tool names.
var separators = strings.NewReplacer("-", "_", ".", "_")

// reserved says why a pack cannot have its name, or returns "". Names that come from
// folders are never reserved, see [segment] and [Pack.dirName].
func reserved(p *Pack) string {
	name := p.Frontmatter.Name()
	switch {
	case name == "":
		return ""
	case strings.EqualFold(p.ID, workspaceID):
		return fmt.Sprintf("the id %q is reserved for the chat's own files", p.ID)
	case strings.Contains(name, "__"):
		return fmt.Sprintf("the name %q holds two underscores in a row, which part a pack from its tool in the names of tools", name)
	}
	for _, s := range []string{path.Base(name), path.Base(p.ID)} {
		if why := reservedWord(s); why != "" && !strings.EqualFold(s, workspaceID) {
			return why
		}
	}
	return ""
}

// workspaceID is the id of the chat's own files.
const workspaceID = "workspace"

// reservedWord says why nothing may have this name, or returns "".
func reservedWord(name string) string {
	lower := strings.ToLower(name)
	switch {
	case lower == workspaceID:
		return fmt.Sprintf("%q is reserved for the chat's own files", name)
	case strings.HasPrefix(lower, "capability_packs") || strings.HasPrefix(lower, "capability.packs"),
		strings.HasPrefix(lower, "capability") && slices.Contains(toolNames, separators.Replace(lower)):
		return fmt.Sprintf("%q is named like a tool of this program", name)
	}
	return ""
}
