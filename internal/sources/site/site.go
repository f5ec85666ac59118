// Package site reads packs from a web site and writes sites: the index of skills at a
// well-known address (Agent Skills Discovery 0.2 and 0.1), or a single archive or
// SKILL.md.
//
// It does not judge packs or upload anything: [Write] makes a folder.
package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/archive"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Agent Skills Discovery: a site lists its skills at a well-known address. 0.2 names
// one file for each skill, with its digest; 0.1 names the files of each, without.
const (
	schema          = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
	wellKnown       = ".well-known/agent-skills"
	wellKnownBefore = ".well-known/skills"
	indexName       = "index.json"
)

// Bounds of a site.
const (
	maxIndex    = 4 << 20
	maxSkills   = 10_000
	maxDocument = sources.MaxDocument
	maxFiles    = 512      // of a skill whose files are fetched separately
	maxBytes    = 16 << 20 // of those files
)

// Open fetches the index of a site: below the address itself, or else below the root
// of its host. If there is no index, the address is taken for an archive or a
// SKILL.md.
func Open(ctx context.Context, w *web.Access, r address.Reference) (sources.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
	defer cancel()
	u, err := url.Parse(r.At)
	if err != nil {
		return nil, err
	}
	name := path.Base(u.Path)
	if r.Sum != "" || address.IsArchive(name) || strings.EqualFold(path.Ext(name), ".md") {
		return openFile(ctx, w, r.At, r.Sum)
	}
	var candidates []string
	if name == indexName {
		candidates = []string{r.At}
	} else {
		for _, base := range []string{u.Path, "/"} {
			if base == "/" && len(candidates) > 0 && path.Clean("/"+u.Path) == "/" {
				break // the same address
			}
			for _, dir := range []string{wellKnown, wellKnownBefore} {
				at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: path.Join("/", base, dir, indexName)}
				candidates = append(candidates, at.String())
			}
		}
	}
	for _, at := range candidates {
		data, from, err := w.Get(ctx, at, maxIndex)
		if missing(err) || err == nil && !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			continue // many sites have a page for every address
		}
		if err != nil {
			return nil, err
		}
		offers, err := readIndex(w, from, data)
		if err != nil {
			return nil, fmt.Errorf("the index at %s: %w", at, err)
		}
		return sources.NewCatalog(r.At, sources.Digest(data), offers), nil
	}
	if name == indexName {
		return nil, fmt.Errorf("there is no index of skills at %s", r.At)
	}
	s, err := openFile(ctx, w, r.At, "")
	if err != nil {
		return nil, fmt.Errorf("%s has no index of skills, and: %w", r.At, err)
	}
	return s, nil
}

// missing reports whether a server says that it has nothing at an address.
func missing(err error) bool {
	e, ok := errors.AsType[*web.StatusError](err)
	return ok && slices.Contains([]int{http.StatusNotFound, http.StatusGone, http.StatusForbidden, http.StatusMethodNotAllowed}, e.Status)
}

// A pinned Snapshot has an address that includes its digest.
type pinned struct {
	sources.Snapshot
	at string
}

// Proofs implements [sources.Bundled].
func (p *pinned) Proofs(ctx context.Context) ([]sources.Proof, error) {
	b, ok := p.Snapshot.(sources.Bundled)
	if !ok {
		return nil, nil
	}
	return b.Proofs(ctx)
}

// signed makes an archive use the detached signatures on its site.
func signed(w *web.Access, at string, a *archive.Archive) {
	a.Beside(func(ctx context.Context, suffix string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
		defer cancel()
		u, err := url.Parse(at)
		if err != nil {
			return nil, err
		}
		u.Path, u.RawPath = u.Path+suffix, ""
		data, _, err := w.Get(ctx, u.String(), archive.MaxSignature)
		begins := map[string]string{archive.SSHSuffix: "-----BEGIN SSH SIGNATURE-----", archive.SigstoreSuffix: "{"}[suffix]
		if missing(err) || err == nil && !bytes.HasPrefix(bytes.TrimSpace(data), []byte(begins)) {
			return nil, nil // many sites have a page for every address
		}
		return data, err
	})
}

func (p *pinned) Resolved() string {
	return p.at + "#sha256=" + strings.TrimPrefix(p.Pin(), "sha256:")
}

// openFile fetches an archive, or a SKILL.md.
func openFile(ctx context.Context, w *web.Access, at, sum string) (_ sources.Snapshot, err error) {
	f, from, err := w.Download(ctx, at, archive.MaxSize)
	if err != nil {
		return nil, err
	}
	a, err := archive.New(f, at, sum)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 512)
	n, _ := f.ReadAt(head, 0)
	if isPacked(head[:n]) {
		signed(w, at, a)
		return &pinned{a, at}, nil
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if !strings.EqualFold(path.Ext(from.Path), ".md") && !bytes.HasPrefix(head, []byte("---")) {
		return nil, errors.New("what is there is neither an archive nor a SKILL.md")
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxDocument {
		return nil, fmt.Errorf("%s: %w: a SKILL.md of %d bytes", at, stage.ErrTooLarge, info.Size())
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		return nil, err
	}
	return &pinned{&sources.Documents{At: at, Fixed: a.Pin(), Files: []sources.Page{{Path: "SKILL.md", Data: data}}}, at}, nil
}

// isPacked reports whether a file begins like a supported archive.
func isPacked(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte{0x1f, 0x8b}) || len(head) >= 262 && string(head[257:262]) == "ustar"
}

// index is a site's index, in either version.
type index struct {
	Schema string  `json:"$schema"`
	Skills []skill `json:"skills"`
}

type skill struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Description string   `json:"description"`
	URL         string   `json:"url"`
	Digest      string   `json:"digest"`
	Files       []string `json:"files"`
}

// readIndex reads an index. A bad entry of 0.2 is left out with the reason; a bad
// entry of 0.1 makes the whole index invalid.
func readIndex(w *web.Access, at *url.URL, data []byte) ([]*sources.Offer, error) {
	var in index
	if err := strictjson.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Schema != "" && in.Schema != schema:
		return nil, fmt.Errorf("it is of a version that is not known: %q", in.Schema)
	case len(in.Skills) > maxSkills:
		return nil, fmt.Errorf("%w: it has %d skills, and %d is the limit", stage.ErrTooLarge, len(in.Skills), maxSkills)
	}
	var offers []*sources.Offer
	seen := map[string]*sources.Offer{}
	for _, s := range in.Skills {
		o := &sources.Offer{Pack: sources.Pack{Path: s.Name, Name: s.Name, Description: s.Description, Valid: true}}
		var err error
		switch {
		case !isSkillName(s.Name):
			err = fmt.Errorf("%q is not the name of a skill", s.Name)
			o.Path = ""
		case seen[s.Name] != nil:
			err = fmt.Errorf("%q occurs twice", s.Name)
			seen[s.Name].Valid, seen[s.Name].Problems = false, []string{err.Error()}
			o.Path = ""
		case in.Schema == "" && s.URL == "":
			o.Fetch, err = s.before(w, at)
		default:
			o.Fetch, err = s.now(w, at)
		}
		if err != nil {
			if in.Schema == "" && s.URL == "" {
				return nil, err
			}
			o.Valid, o.Problems = false, []string{err.Error()}
		}
		offers = append(offers, o)
		if o.Path != "" {
			seen[s.Name] = o
		}
	}
	return offers, nil
}

// isSkillName reports whether a name follows the Agent Skills specification.
func isSkillName(s string) bool {
	return len(s) <= 64 && s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && strings.Trim(s, "-") == s && !strings.Contains(s, "--")
}

// now returns a function that fetches a skill of 0.2.
func (s *skill) now(w *web.Access, index *url.URL) (func(context.Context) (sources.Snapshot, error), error) {
	to, err := index.Parse(s.URL)
	switch {
	case err != nil || s.URL == "" || to.User != nil || to.Fragment != "":
		return nil, fmt.Errorf("%q is not an address of a skill", s.URL)
	case !sources.IsDigest(s.Digest):
		return nil, errors.New("it has no SHA-256 digest")
	case s.Type != "skill-md" && s.Type != "archive":
		return nil, fmt.Errorf("its type %q is not known", s.Type)
	}
	return func(ctx context.Context) (sources.Snapshot, error) {
		ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
		defer cancel()
		if s.Type == "archive" {
			f, _, err := w.Download(ctx, to.String(), archive.MaxSize)
			if err != nil {
				return nil, err
			}
			a, err := archive.New(f, to.String(), strings.TrimPrefix(s.Digest, "sha256:"))
			if err != nil {
				return nil, err
			}
			signed(w, to.String(), a)
			return a, nil
		}
		data, _, err := w.Get(ctx, to.String(), maxDocument)
		if err != nil {
			return nil, err
		}
		if got := sources.Digest(data); got != s.Digest {
			return nil, &sources.PinError{At: to.String(), Want: s.Digest, Got: got}
		}
		return &sources.Documents{At: to.String(), Fixed: s.Digest, Files: []sources.Page{{Path: "SKILL.md", Data: data}}}, nil
	}, nil
}

// before returns a function that fetches a skill of 0.1.
func (s *skill) before(w *web.Access, index *url.URL) (func(context.Context) (sources.Snapshot, error), error) {
	if !slices.Contains(s.Files, "SKILL.md") {
		return nil, fmt.Errorf("%q has no SKILL.md among its files", s.Name)
	}
	if len(s.Files) > maxFiles {
		return nil, fmt.Errorf("%q: %w: it has %d files, and %d is the limit", s.Name, stage.ErrTooLarge, len(s.Files), maxFiles)
	}
	for _, f := range s.Files {
		if f == "" || path.Clean("/"+f) != "/"+f || strings.ContainsAny(f, `\?#%`) {
			return nil, fmt.Errorf("%q: %q is not the path of a file of a skill", s.Name, f)
		}
	}
	files := slices.Sorted(slices.Values(s.Files))
	return func(ctx context.Context) (sources.Snapshot, error) {
		ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
		defer cancel()
		dir := index.JoinPath("..", s.Name)
		dir.RawQuery = ""
		out := &sources.Documents{At: dir.String()}
		var lines []string
		left := int64(maxBytes)
		for _, f := range files {
			data, _, err := w.Get(ctx, dir.JoinPath(f).String(), left)
			if err != nil {
				return nil, err
			}
			left -= int64(len(data))
			out.Files = append(out.Files, sources.Page{Path: f, Data: data})
			lines = append(lines, f+"\x00"+sources.Digest(data)+"\n")
		}
		out.Fixed = sources.Digest([]byte(strings.Join(lines, "")))
		return out, nil
	}, nil
}
