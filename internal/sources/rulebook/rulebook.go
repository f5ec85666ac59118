// Package rulebook reads rulebooks from a server with Stakpak's API: the list of them, and
// each as a pack of one SKILL.md.
//
// It trusts the server about who may see a rulebook, and does not check a rulebook's
// content.
package rulebook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Bounds on answers of the rulebook API.
const (
	maxRulebooks = 8 << 20 // bytes of the list
	maxRulebook  = sources.MaxDocument
	maxRules     = 10_000
)

// load fetches one rulebook with its content.
func load(ctx context.Context, w *web.Access, uri string) (sources.Skill, error) {
	ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
	defer cancel()
	at, err := rules(w, uri)
	if err != nil {
		return sources.Skill{}, err
	}
	data, _, err := w.Get(ctx, at, maxRulebook)
	if e, ok := errors.AsType[*web.StatusError](err); ok && e.Status == http.StatusNotFound {
		return sources.Skill{}, fmt.Errorf("there is no rulebook %q", uri)
	}
	if err != nil {
		return sources.Skill{}, err
	}
	var r sources.Rulebook
	if err := strictjson.Unmarshal(data, &r); err != nil {
		return sources.Skill{}, fmt.Errorf("the rulebook %q: %w", uri, err)
	}
	if r.URI != uri {
		return sources.Skill{}, fmt.Errorf("asked for the rulebook %q, %s answers with %q", uri, w.Rulebooks, r.URI)
	}
	return r.Skill(), nil
}

// rules returns the URL of all rulebooks, or of one.
func rules(w *web.Access, uri string) (string, error) {
	if w.Rulebooks == "" {
		return "", errors.New("no server of rulebooks is configured")
	}
	at, err := url.Parse(w.Rulebooks)
	if err != nil || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return "", fmt.Errorf("%q is not an address of a server of rulebooks", w.Rulebooks)
	}
	if uri == "" {
		return at.JoinPath("v1", "rules").String(), nil
	}
	// One segment, whatever its content: JoinPath would resolve "..".
	return strings.TrimSuffix(at.JoinPath("v1", "rules").String(), "/") + "/" + escaped(uri), nil
}

// escaped returns a text as one segment of a path that no server resolves further.
func escaped(s string) string {
	if strings.Trim(s, ".") == "" {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

func list(ctx context.Context, w *web.Access) ([]sources.ListedRulebook, string, error) {
	ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
	defer cancel()
	at, err := rules(w, "")
	if err != nil {
		return nil, "", err
	}
	data, _, err := w.Get(ctx, at, maxRulebooks)
	if err != nil {
		return nil, "", err
	}
	var list struct {
		Results []sources.ListedRulebook `json:"results"`
	}
	if err := strictjson.Unmarshal(data, &list); err != nil {
		return nil, "", fmt.Errorf("the list of rulebooks at %s: %w", at, err)
	}
	if len(list.Results) > maxRules {
		return nil, "", fmt.Errorf("%w: the list at %s has %d rulebooks, and %d is the limit", stage.ErrTooLarge, at, len(list.Results), maxRules)
	}
	return list.Results, sources.Digest(data), nil
}

// Open opens a rulebook as a pack of one SKILL.md, or all of them as a list.
func Open(ctx context.Context, w *web.Access, r address.Reference) (sources.Snapshot, error) {
	if r.At != "" {
		s, err := load(ctx, w, r.At)
		if err != nil {
			return nil, err
		}
		return packOf(s)
	}
	listed, pin, err := list(ctx, w)
	if err != nil {
		return nil, err
	}
	var offers []*sources.Offer
	taken := map[string]*sources.Offer{}
	for _, l := range listed {
		name := nameOf(l.Skill())
		o := &sources.Offer{Pack: sources.Pack{Path: name, Name: name, Description: l.Description, Tags: l.Tags, Valid: true}, Fetch: func(ctx context.Context) (sources.Snapshot, error) {
			s, err := load(ctx, w, l.URI)
			if err != nil {
				return nil, err
			}
			return packOf(s)
		}}
		offers = append(offers, o)
		switch other := taken[name]; {
		case name == "":
			o.Valid, o.Problems = false, []string{fmt.Sprintf("no name of a pack can be made of %q", l.URI)}
		case other != nil:
			// Each has an address of its own.
			why := fmt.Sprintf("several rulebooks have the name %q; add one by its address, %sURI", name, address.RulebookScheme)
			other.Valid, other.Problems, o.Valid, o.Problems = false, []string{why}, false, []string{why}
		default:
			taken[name] = o
		}
	}
	return sources.NewCatalog(address.RulebookScheme, pin, offers), nil
}

// packOf returns the rulebook as a pack, which depends only on its content, name,
// description and tags.
func packOf(s sources.Skill) (sources.Snapshot, error) {
	r, err := s.Rulebook()
	if err != nil {
		return nil, err
	}
	name := nameOf(s)
	if name == "" {
		return nil, fmt.Errorf("no name of a pack can be made of %q", s.URI)
	}
	var doc strings.Builder
	fmt.Fprintf(&doc, "---\nname: %s\ndescription: %s\n", name, quoted(r.Description))
	if len(r.Tags) > 0 {
		doc.WriteString("tags:\n")
		for _, t := range r.Tags {
			fmt.Fprintf(&doc, "  - %s\n", quoted(t))
		}
	}
	doc.WriteString("---\n\n")
	doc.WriteString(strings.TrimRight(r.Content, "\r\n") + "\n")
	data := []byte(doc.String())
	s.Content = nil // it is in the document
	return &sources.Documents{At: address.RulebookScheme + s.URI, Fixed: sources.Digest(data), Files: []sources.Page{{Path: "SKILL.md", Data: data}}, Said: s}, nil
}

// nameOf returns the name for a rulebook's pack: the last part of its URI without
// extension, or its id.
func nameOf(s sources.Skill) string {
	base := path.Base(strings.TrimRight(s.URI, "/"))
	for _, text := range []string{strings.TrimSuffix(base, path.Ext(base)), s.ID} {
		if name := packname.Nearest(text); name != "" {
			return name
		}
	}
	return ""
}

// quoted returns a text as one line of YAML, which has the same escapes as Go.
func quoted(s string) string { return strconv.QuoteToGraphic(s) }
