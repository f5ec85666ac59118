// Package address reads and spells the URIs of resources: which file or folder of which
// pack or workspace one names, and which packs are skills.
//
// It opens nothing, and it does not decide what a client may read: a URI that is read here
// need not lead anywhere.
package address

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
	SchemeSkill     = "skill"     // files of packs that are skills by the Skills extension
	SchemePack      = "pack"      // files of the other packs
	SchemeWorkspace = "workspace" // files that runs of the chat left behind
)

// maxURI is the longest URI that is looked at, in bytes: three for each byte of
// the longest path of any system, and the scheme.
const maxURI = 16 << 10

// A URI names a file or a folder: "skill://acme/refunds/docs/a.md". The
// first segments are the pack's id, or the handle of a workspace.
type URI struct {
	Scheme string
	Path   string // decoded, clean, with slashes
}

// Parse reads a URI of ours. Percent-encoding is decoded once. What the path
// rules of packfs refuse, or would change, is none: neither "..", nor "//", nor
// a slash at the end, nor a slash or backslash that was encoded. So is one with a
// query or a fragment, and one of another scheme.
func Parse(text string) (u URI, ok bool) {
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case !ok || len(text) > maxURI:
		return u, false
	case scheme != SchemeSkill && scheme != SchemePack && scheme != SchemeWorkspace:
		return u, false
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		if segments[i], ok = unescape(s); !ok {
			return u, false
		}
	}
	u = URI{Scheme: scheme, Path: strings.Join(segments, "/")}
	clean, err := packfs.Clean(u.Path)
	return u, err == nil && clean == u.Path && clean != "."
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
func (u URI) String() string {
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	for i := range len(u.Path) {
		switch c := u.Path[i]; {
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

// OfPack returns the URI of a file or folder of a pack; name "." is the pack's own.
func OfPack(p *packs.Pack, name string) string {
	scheme := SchemePack
	if IsSkill(p) {
		scheme = SchemeSkill
	}
	return URI{scheme, path.Join(p.ID, name)}.String()
}

// SkillFile is how the entry document of a skill is called, in this letter case.
const SkillFile = "SKILL.md"

// IsSkill reports whether a pack is one by the Skills extension: its document is
// a SKILL.md, the last segment of its id is the name in it, and what is written
// there reads the same for everybody.
func IsSkill(p *packs.Pack) bool {
	return !p.Loose && p.Entry == SkillFile && path.Base(p.ID) == p.Name && isSkillName(p.Name) && IsVerbatim(p.Problems)
}

// isSkillName reports whether a name follows the rules of Agent Skills.
func isSkillName(name string) bool {
	if len(name) == 0 || len(name) > 64 || strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// A Place is where a URI may lead to: a path inside a pack.
type Place struct {
	Pack *packs.Pack
	Path string // "." for the pack's folder
}

// Places returns where a URI of a pack may lead to, the pack with the longest
// id first: a pack that lies in another one is a folder of that one as well.
func Places(catalog *packs.Catalog, u URI) []Place {
	if u.Scheme != SchemeSkill && u.Scheme != SchemePack {
		return nil
	}
	var all []Place
	for end := len(u.Path); end > 0; end = strings.LastIndexByte(u.Path[:end], '/') {
		p := catalog.ByID(u.Path[:end])
		if p == nil || !IsOffered(p) || IsSkill(p) != (u.Scheme == SchemeSkill) {
			continue
		}
		inside := strings.TrimPrefix(u.Path[end:], "/")
		if inside == "" {
			inside = "."
		}
		all = append(all, Place{p, inside})
	}
	return all
}

// IsVerbatim reports whether a frontmatter is to every reader of YAML what it is
// to ours, given what ours found wrong with it.
func IsVerbatim(problems []diag.Diagnostic) bool {
	return !slices.ContainsFunc(problems, func(d diag.Diagnostic) bool {
		switch d.Code {
		case frontmatter.CodeRecovered, frontmatter.CodeDuplicate, frontmatter.CodeNameNotText, frontmatter.CodeDescriptionNotText:
			return true
		default:
			return false
		}
	})
}

// IsOffered reports whether an attached pack is there for models.
func IsOffered(p *packs.Pack) bool { return !p.Frontmatter.DisableModelInvocation() }

// PackAt returns the id in a URI of a pack, or of its entry document; any other text is
// returned as it is. Unlike a resource's, the scheme may be in any letter case, as
// a person writes it.
func PackAt(catalog *packs.Catalog, text string) string {
	given := text
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		text = strings.ToLower(scheme) + "://" + rest
	}
	u, ok := Parse(strings.TrimRight(text, "/"))
	if !ok || u.Scheme == SchemeWorkspace {
		return given
	}
	if p, err := catalog.Lookup(path.Dir(u.Path)); err == nil && p.Entry == path.Base(u.Path) {
		return p.ID
	}
	return u.Path
}
