// Package address parses and formats the URIs of resources. A URI names a file or
// folder of a pack or workspace. The package also says which packs are skills.
//
// It opens nothing, and it does not decide what a client may read: a URI that it
// parses need not lead anywhere.
package address

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// ErrNoResource says that a URI names nothing that its reader may know about.
var ErrNoResource = errors.New("there is no such resource")

// The schemes of our resources.
const (
	SchemeSkill     = "skill"     // files of packs that are skills by the Skills extension
	SchemePack      = "pack"      // files of all other packs
	SchemeWorkspace = "workspace" // files that the chat's runs left behind
)

// maxURI is the longest accepted URI, in bytes: three for each byte of the longest
// path on any system, and the scheme.
const maxURI = 16 << 10

// A URI names a file or a folder: "skill://acme/refunds/docs/a.md". The
// first segments are the pack's id, or the handle of a workspace.
type URI struct {
	Scheme string
	Path   string // decoded, clean, with slashes
}

// Parse reads one of our URIs. It decodes percent-encoding once. It refuses a path
// that the rules of packfs refuse or would change: one with "..", "//", a slash at
// the end, or an encoded slash or backslash. It also refuses a query, a fragment, and
// other schemes.
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

// unescape decodes a segment once; ok is false if it is not a valid segment.
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

// String returns the URI's canonical spelling: every byte that RFC 3986 does not call
// unreserved is encoded, so that a segment means the same in the authority and in the
// path.
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

// OfPack returns the URI of a file or folder of a pack; name "." is the pack's
// folder.
func OfPack(p *packs.Pack, name string) string {
	scheme := SchemePack
	if IsSkill(p) {
		scheme = SchemeSkill
	}
	return URI{scheme, path.Join(p.ID, name)}.String()
}

// SkillFile is the name of a skill's entry document, in this letter case.
const SkillFile = "SKILL.md"

// IsSkill reports whether a pack is a skill by the Skills extension: its document is
// a SKILL.md, the last segment of its id is the name in that document, and every
// reader understands the frontmatter alike.
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

// A Place is where a URI may lead: a path inside a pack.
type Place struct {
	Pack *packs.Pack
	Path string // "." for the pack's folder
}

// Places returns where a URI of a pack may lead, the pack with the longest id first:
// a pack inside another pack is also a folder of that one.
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

// IsVerbatim reports whether every YAML reader understands a frontmatter as ours
// does, given the problems that ours found in it.
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

// IsOffered reports whether models may know about an attached pack.
func IsOffered(p *packs.Pack) bool { return !p.Frontmatter.DisableModelInvocation() }

// PackAt returns the pack's id in a URI of a pack or of its entry document, and
// returns any other text unchanged. Unlike in a resource's URI, the scheme may be in
// any letter case, since a person wrote it.
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
