package sources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// Bounds of what the API of rulebooks answers.
const (
	maxRulebooks = 8 << 20 // bytes of the list
	maxRulebook  = maxDocument
	maxRules     = 10_000
)

// Rulebooks fetches the metadata of all rulebooks that the API shows to who asks:
// without a key, the public ones.
func Rulebooks(ctx context.Context, w *Web) ([]Skill, error) {
	listed, _, err := w.rulebooks(ctx)
	var all []Skill
	for _, r := range listed {
		all = append(all, r.Skill())
	}
	return all, err
}

// LoadRulebook fetches one rulebook with its content.
func LoadRulebook(ctx context.Context, w *Web, uri string) (Skill, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	at, err := w.rules(uri)
	if err != nil {
		return Skill{}, err
	}
	data, _, err := w.get(ctx, at, maxRulebook)
	if e, ok := errors.AsType[*StatusError](err); ok && e.Status == http.StatusNotFound {
		return Skill{}, fmt.Errorf("there is no rulebook %q", uri)
	}
	if err != nil {
		return Skill{}, err
	}
	var r Rulebook
	if err := unmarshal(data, &r); err != nil {
		return Skill{}, fmt.Errorf("the rulebook %q: %w", uri, err)
	}
	if r.URI != uri {
		return Skill{}, fmt.Errorf("asked for the rulebook %q, %s answers with %q", uri, w.Rulebooks, r.URI)
	}
	return r.Skill(), nil
}

// rules is the address of all rulebooks, or of one.
func (w *Web) rules(uri string) (string, error) {
	if w.Rulebooks == "" {
		return "", errors.New("no server of rulebooks is configured")
	}
	at, err := url.Parse(w.Rulebooks)
	if err != nil || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return "", fmt.Errorf("%q is no address of a server of rulebooks", w.Rulebooks)
	}
	if uri == "" {
		return at.JoinPath("v1", "rules").String(), nil
	}
	// One segment, whatever is in it: JoinPath would resolve "..".
	return strings.TrimSuffix(at.JoinPath("v1", "rules").String(), "/") + "/" + escaped(uri), nil
}

// escaped is a text as one segment of a path that no server resolves.
func escaped(s string) string {
	if strings.Trim(s, ".") == "" {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

func (w *Web) rulebooks(ctx context.Context) ([]ListedRulebook, string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	at, err := w.rules("")
	if err != nil {
		return nil, "", err
	}
	data, _, err := w.get(ctx, at, maxRulebooks)
	if err != nil {
		return nil, "", err
	}
	var list struct {
		Results []ListedRulebook `json:"results"`
	}
	if err := unmarshal(data, &list); err != nil {
		return nil, "", fmt.Errorf("the list of rulebooks at %s: %w", at, err)
	}
	if len(list.Results) > maxRules {
		return nil, "", fmt.Errorf("%w: the list at %s has %d rulebooks, and %d is the limit", stage.ErrTooLarge, at, len(list.Results), maxRules)
	}
	return list.Results, digestOf(data), nil
}

// OpenRulebook opens a rulebook as a pack of one SKILL.md, or all of them as a list.
func OpenRulebook(ctx context.Context, w *Web, r Reference) (Snapshot, error) {
	if r.At != "" {
		s, err := LoadRulebook(ctx, w, r.At)
		if err != nil {
			return nil, err
		}
		return rulebookPack(s)
	}
	listed, pin, err := w.rulebooks(ctx)
	if err != nil {
		return nil, err
	}
	c := &catalog{at: rulebookScheme, pin: pin}
	taken := map[string]*offer{}
	for _, l := range listed {
		name := rulebookName(l.Skill())
		o := &offer{Pack: Pack{Path: name, Name: name, Description: l.Description, Tags: l.Tags, Valid: true}, fetch: func(ctx context.Context) (Snapshot, error) {
			s, err := LoadRulebook(ctx, w, l.URI)
			if err != nil {
				return nil, err
			}
			return rulebookPack(s)
		}}
		c.offers = append(c.offers, o)
		switch other := taken[name]; {
		case name == "":
			o.Valid, o.Problems = false, []string{fmt.Sprintf("no name of a pack can be made of %q", l.URI)}
		case other != nil:
			// Each has an address of its own.
			why := fmt.Sprintf("several rulebooks have the name %q; add one by its address, %sURI", name, rulebookScheme)
			other.Valid, other.Problems, o.Valid, o.Problems = false, []string{why}, false, []string{why}
		default:
			taken[name] = o
		}
	}
	return c, nil
}

// rulebookPack is the rulebook as a pack. It is the same as long as its content, name,
// description and tags are.
func rulebookPack(s Skill) (Snapshot, error) {
	r, err := s.Rulebook()
	if err != nil {
		return nil, err
	}
	name := rulebookName(s)
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
	return &documents{rulebookScheme + s.URI, digestOf(data), []page{{"SKILL.md", data}}, s}, nil
}

// rulebookName is the name of the pack that a rulebook becomes: the last part of its
// URI without its ending, or its id.
func rulebookName(s Skill) string {
	base := path.Base(strings.TrimRight(s.URI, "/"))
	for _, text := range []string{strings.TrimSuffix(base, path.Ext(base)), s.ID} {
		if name := packs.NameFor(text); name != "" {
			return name
		}
	}
	return ""
}

// quoted is a text as one line of YAML: Go's escapes are YAML's, too.
func quoted(s string) string { return strconv.QuoteToGraphic(s) }
