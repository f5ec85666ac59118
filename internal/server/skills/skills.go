// Package skills makes the data of the Skills extension of MCP, SEP-2640: the entry
// of a skill, pages of entries, the discovery index, and a skill's manifest.
//
// It answers no requests, and does not decide which packs may be shown: its caller
// passes those.
package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
	"github.com/packs-mcp/packs-mcp/internal/server/toolresult"
)

// Options configure Skills. All of them are required.
type Options struct {
	Digests     *packfs.DigestCache
	Frontmatter int                     // bytes of a skill's frontmatter
	Describe    func(string) string     // makes a description safe to show
	KeepsOut    func(*packs.Pack) error // returns why nothing of a pack may be given, or nil
	Logger      *slog.Logger
}

// Skills makes the data of skills from packs. It is safe for concurrent use.
type Skills struct {
	o Options

	mu   sync.Mutex
	told map[string]bool // :: folder of a pack → the log already says why it is not a skill
}

// New returns Skills with these options.
func New(o Options) *Skills { return &Skills{o: o} }

// The limits of a skill, by the extension. maxNames bounds what is looked at to check
// them: folders count too.
const (
	maxFiles = 512
	maxBytes = 16 << 20
	maxNames = 8 * maxFiles
)

// pageBytes is after how many bytes of JSON a page of skills ends. An entry is
// never split, so a page is up to one entry longer.
const pageBytes = 256 << 10

// An entry is one skill: its document, every key of its frontmatter, and
// every file with the digest of its bytes.
type entry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []file          `json:"resources"`
}

type file struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// Page returns the entries of a page of skills, starting after the URI after. The
// packs must be sorted by the URIs of their documents. The last URI is empty if no
// page follows. Page leaves out packs that turn out not to be skills.
func (s *Skills) Page(ctx context.Context, of []*packs.Pack, after string) (entries []json.RawMessage, last string, err error) {
	entries = []json.RawMessage{}
	size := 0
	for _, p := range of {
		uri := address.OfPack(p, p.Entry)
		if uri <= after {
			continue
		}
		if len(entries) >= pages.Size || size >= pageBytes {
			return entries, last, nil
		}
		last = uri
		entry, err := s.Entry(ctx, p)
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		if err == nil {
			err = listable(p)
		}
		if err != nil {
			s.LeftOut(p, err)
			continue
		}
		entries = append(entries, entry)
		size += len(entry)
	}
	return entries, "", nil
}

// LeftOut logs, once for each pack, why it is not among the skills.
func (s *Skills) LeftOut(p *packs.Pack, err error) {
	s.mu.Lock()
	told := s.told[p.Dir]
	if s.told == nil {
		s.told = make(map[string]bool)
	}
	s.told[p.Dir] = true
	s.mu.Unlock()
	if !told {
		s.o.Logger.Warn("a pack is left out of the list of skills; its documents, files and tools are served all the same", "pack", p.ID, "err", err)
	}
}

// At returns the skill whose document has this URI; nil if there is none.
func At(catalog *packs.Catalog, uri string) *packs.Pack {
	u, ok := address.Parse(uri)
	if !ok || u.Scheme != address.SchemeSkill || path.Base(u.Path) != address.SkillFile {
		return nil
	}
	for _, at := range address.Places(catalog, u) {
		if at.Path == address.SkillFile {
			return at.Pack
		}
	}
	return nil
}

// errNoSkill says that a pack is not a skill by the extension, although it looked
// like one when it was found.
var errNoSkill = errors.New("the pack is not a skill")

// IsNone reports whether an error says that a pack is not a skill, or is larger than
// a skill may be.
func IsNone(err error) bool {
	_, tooLarge := errors.AsType[*packfs.TooLargeError](err)
	return tooLarge || errors.Is(err, errNoSkill)
}

// Entry makes the entry of one skill from its current bytes.
func (s *Skills) Entry(ctx context.Context, p *packs.Pack) (json.RawMessage, error) {
	tree, err := s.tree(ctx, p)
	if err != nil {
		return nil, err
	}
	matter, err := s.frontmatter(p, tree)
	if err != nil {
		return nil, err
	}
	e := entry{URI: address.OfPack(p, address.SkillFile), Frontmatter: matter, Resources: make([]file, len(tree.Files))}
	for i, f := range tree.Files {
		e.Resources[i] = file{URI: address.OfPack(p, f.Path), Digest: f.Digest, Size: f.Size}
	}
	return toolresult.JSON(e)
}

// tree digests a skill, up to the limits of a skill.
func (s *Skills) tree(ctx context.Context, p *packs.Pack) (*packfs.Tree, error) {
	if err := s.o.KeepsOut(p); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSkill, err)
	}
	dir, err := p.OpenDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	tree, err := dir.DigestWithin(ctx, s.o.Digests, packfs.Bound{Files: maxNames, Bytes: maxBytes})
	if err != nil {
		return nil, err
	}
	if n := len(tree.Files); n > maxFiles {
		return nil, &packfs.TooLargeError{Size: int64(n), Limit: maxFiles, Unit: "files"}
	}
	for _, f := range tree.Files {
		// A manifest must have every file, and every file in it must be readable.
		if u, ok := address.Parse(address.OfPack(p, f.Path)); !ok || u.Path != path.Join(p.ID, f.Path) {
			return nil, fmt.Errorf("the file %q cannot have a URI: %w", safetext.Line(f.Path), errNoSkill)
		}
	}
	return tree, nil
}

// frontmatter returns the document's current frontmatter as JSON.
func (s *Skills) frontmatter(p *packs.Pack, tree *packfs.Tree) (json.RawMessage, error) {
	file, ok := tree.File(address.SkillFile)
	if !ok {
		return nil, fmt.Errorf("%s is not a file: %w", address.SkillFile, errNoSkill)
	}
	dir, err := p.OpenDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	page, err := dir.ReadVerified(address.SkillFile, 0, maxBytes, packfs.Limits{Page: maxBytes, PageMax: maxBytes, File: maxBytes}, file.Digest)
	if err != nil {
		return nil, err
	}
	// With the same bound as when the packs were found: the document may have
	// changed.
	doc, problems := frontmatter.Inspect(address.SkillFile, page.Data, s.o.Frontmatter)
	if doc == nil || doc.Name != p.Name || !address.IsVerbatim(problems) {
		return nil, fmt.Errorf("its frontmatter is no longer what it was: %w", errNoSkill)
	}
	matter := doc.JSON()
	if !harmless(matter) {
		return nil, fmt.Errorf("its frontmatter has characters that cannot be seen, or that change what is seen, and it would be given as it is: %w", errNoSkill)
	}
	return matter, nil
}

// harmless reports whether a frontmatter needs no escaping before it is shown. The
// extension requires it verbatim, and clients pass it to models without a question.
func harmless(matter json.RawMessage) bool {
	var v any
	if json.Unmarshal(matter, &v) != nil {
		return false
	}
	var walk func(v any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case string:
			return safetext.Text(v) == v
		case []any:
			return !slices.ContainsFunc(v, func(item any) bool { return !walk(item) })
		case map[string]any:
			for k, item := range v {
				if safetext.Line(k) != k || !walk(item) {
					return false
				}
			}
		}
		return true
	}
	return walk(v)
}

// maxDescription is how long the description of a skill may be, in
// characters, by the rules of Agent Skills.
const maxDescription = 1024

// listable returns why an existing skill is not listed; nil if it is.
func listable(p *packs.Pack) error {
	if n := utf8.RuneCountInString(p.Description); n > maxDescription {
		return fmt.Errorf("its description has %d characters, and Agent Skills allow %d", n, maxDescription)
	}
	return nil
}
