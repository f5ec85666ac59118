package server

import (
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// The schemes of our resources.
const (
	schemeSkill     = "skill"     // files of packs that are skills by the Skills extension
	schemePack      = "pack"      // files of the other packs
	schemeWorkspace = "workspace" // files that runs of the chat left behind
)

// maxURI is the longest URI that is looked at, in bytes: three for each byte of
// the longest path of any system, and the scheme.
const maxURI = 16 << 10

// A resourceURI names a file or a folder: "skill://acme/refunds/docs/a.md". The
// first segments are the pack's id, or the handle of a workspace.
type resourceURI struct {
	scheme string
	path   string // decoded, clean, with slashes
}

// parseURI reads a URI of ours. Percent-encoding is decoded once. What the path
// rules of packfs refuse, or would change, is none: neither "..", nor "//", nor
// a slash at the end, nor a slash or backslash that was encoded. So is one with a
// query or a fragment, and one of another scheme.
func parseURI(text string) (u resourceURI, ok bool) {
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case !ok || len(text) > maxURI:
		return u, false
	case scheme != schemeSkill && scheme != schemePack && scheme != schemeWorkspace:
		return u, false
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		if segments[i], ok = unescape(s); !ok {
			return u, false
		}
	}
	u = resourceURI{scheme: scheme, path: strings.Join(segments, "/")}
	clean, err := packfs.Clean(u.path)
	return u, err == nil && clean == u.path && clean != "."
}

// unescape decodes a segment once; it is not ok when it cannot be one.
func unescape(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) {
				return "", false
			}
			high, ok := unhex(s[i+1])
			low, ok2 := unhex(s[i+2])
			if !ok || !ok2 {
				return "", false
			}
			c = high<<4 | low
			i += 2
			if c == '/' || c == 0 {
				return "", false
			}
		case c <= ' ' || c == '?' || c == '#' || c == 0x7f:
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), b.Len() > 0
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	default:
		return 0, false
	}
}

// String spells the URI in the one way in which we give it: every byte that RFC
// 3986 does not call unreserved is encoded, so that a path means the same in
// the place of an authority and behind it.
func (u resourceURI) String() string {
	var b strings.Builder
	b.WriteString(u.scheme + "://")
	for i := range len(u.path) {
		switch c := u.path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '-', c == '.', c == '_', c == '~', c == '/':
			b.WriteByte(c)
		default:
			const digits = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// packURI is the URI of a file or folder of a pack; name "." is the pack's own.
func packURI(p *packs.Pack, name string) string {
	scheme := schemePack
	if isSkill(p) {
		scheme = schemeSkill
	}
	return resourceURI{scheme, path.Join(p.ID, name)}.String()
}

// skillFile is how the entry document of a skill is called, in this letter case.
const skillFile = "SKILL.md"

// isSkill reports whether a pack is one by the Skills extension: its document is
// a SKILL.md, the last segment of its id is the name in it, and what is written
// there reads the same for everybody.
func isSkill(p *packs.Pack) bool {
	return !p.Loose && p.Entry == skillFile && path.Base(p.ID) == p.Name && isSkillName(p.Name) && verbatim(p.Problems)
}

// isSkillName reports whether a name follows the rules of Agent Skills.
func isSkillName(name string) bool {
	if len(name) == 0 || len(name) > 64 || strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// A place is where a URI may lead to: a path inside a pack.
type place struct {
	pack *packs.Pack
	path string // "." for the pack's folder
}

// places returns where a URI of a pack may lead to, the pack with the longest
// id first: a pack that lies in another one is a folder of that one as well.
func places(catalog *packs.Catalog, u resourceURI) []place {
	if u.scheme != schemeSkill && u.scheme != schemePack {
		return nil
	}
	var all []place
	for end := len(u.path); end > 0; end = strings.LastIndexByte(u.path[:end], '/') {
		p := catalog.ByID(u.path[:end])
		if p == nil || !isOffered(p) || isSkill(p) != (u.scheme == schemeSkill) {
			continue
		}
		inside := strings.TrimPrefix(u.path[end:], "/")
		if inside == "" {
			inside = "."
		}
		all = append(all, place{p, inside})
	}
	return all
}

// verbatim reports whether a frontmatter is to every reader of YAML what it is
// to ours, given what ours found wrong with it.
func verbatim(problems []diag.Diagnostic) bool {
	return !slices.ContainsFunc(problems, func(d diag.Diagnostic) bool {
		switch d.Code {
		case frontmatter.CodeRecovered, frontmatter.CodeDuplicate, frontmatter.CodeNameNotText, frontmatter.CodeDescriptionNotText:
			return true
		default:
			return false
		}
	})
}

// isOffered reports whether an attached pack is there for models.
func isOffered(p *packs.Pack) bool { return !p.Frontmatter.DisableModelInvocation() }

// packAt is the id in a URI of a pack, or of its entry document; any other text is
// returned as it is. Unlike a resource's, the scheme may be in any letter case, as
// a person writes it.
func packAt(catalog *packs.Catalog, text string) string {
	given := text
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		text = strings.ToLower(scheme) + "://" + rest
	}
	u, ok := parseURI(strings.TrimRight(text, "/"))
	if !ok || u.scheme == schemeWorkspace {
		return given
	}
	if p, err := catalog.Lookup(path.Dir(u.path)); err == nil && p.Entry == path.Base(u.path) {
		return p.ID
	}
	return u.path
}
