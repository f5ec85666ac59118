// Package offer says what a client and its model are told of packs before any call:
// which packs, prompts, documents and skills are in the lists, and in what words.
//
// It does not decide about calls; package gate does, and denies a call about a pack
// that is in no list as well. It knows no chat: what a chat has attached is in the
// Catalog that a caller passes. It reads no file but the declarations of tools.
package offer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// Options are what an [Offer] is made of.
type Options struct {
	// Forbids reports whether the user's rules forbid every request of a kind about a
	// pack; with an empty kind, everything about it.
	Forbids func(kind call.Kind, packID string) bool
	// Exposed returns the name under which a base tool is listed.
	Exposed func(plain string) string
	// Origin returns who offers the pack in a folder; nil: nobody does.
	Origin func(dir string) Origin
	// Description is the longest description that a model sees, in characters.
	Description int
}

// An Origin says who offers a pack that was added from elsewhere. The zero value is a
// pack of this machine.
type Origin struct {
	Label     string // "[rulebook]" or "[pak]", or ""
	CreatedAt string // RFC 3339, as its provider says; "" for none
	UpdatedAt string
}

// An Offer says what is offered of the packs of a Catalog. What a rule forbids
// altogether is not offered, because the gate is not asked about the entries of a
// list. A pack about which everything is forbidden is in no list. A pack that may not
// be opened has no prompt and no document among the resources, and is not a skill. A
// pack whose files may not be read is not a skill either, since a skill's manifest
// lists their digests. A pack that may not be attached is not offered for attaching.
// A request that names any of these still goes to the gate, which denies it and
// records that.
//
// An Offer never changes, and is safe for concurrent use.
type Offer struct{ opts Options }

// New returns an Offer. Forbids and Exposed are required.
func New(o Options) *Offer { return &Offer{o} }

// forModels returns the packs that models may know about: attached, and not reserved
// by their author for people. It asks no rules.
func forModels(c *packs.Catalog) []*packs.Pack {
	return slices.DeleteFunc(c.Attached(), func(p *packs.Pack) bool { return !address.IsOffered(p) })
}

// Hides reports whether everything about a pack is forbidden.
func (o *Offer) Hides(p *packs.Pack) bool { return o.opts.Forbids("", p.ID) }

// MayOpen reports whether no rule forbids to open a pack.
func (o *Offer) MayOpen(p *packs.Pack) bool { return !o.opts.Forbids(call.KindOpen, p.ID) }

// MayRead reports whether no rule forbids to read a pack's files.
func (o *Offer) MayRead(p *packs.Pack) bool { return !o.opts.Forbids(call.KindRead, p.ID) }

// WorkspaceID is the id that stands for the chat's workspace in place of a pack's.
const WorkspaceID = "workspace"

// MayReadWorkspaces reports whether no rule forbids to read files of workspaces.
func (o *Offer) MayReadWorkspaces() bool { return !o.opts.Forbids(call.KindRead, WorkspaceID) }

// ShowsFiles reports whether the list of all of a pack's files, with their digests,
// may be shown.
func (o *Offer) ShowsFiles(p *packs.Pack) bool { return o.MayOpen(p) && o.MayRead(p) }

// MayGive reports whether no rule forbids a place.
func (o *Offer) MayGive(at address.Place) bool {
	if at.Path == at.Pack.Entry {
		return o.MayOpen(at.Pack)
	}
	return o.MayRead(at.Pack)
}

// MayChoose reports whether a pack is offered as the argument of the prompt
// [PromptAttach] or [PromptDetach].
func (o *Offer) MayChoose(prompt string, p *packs.Pack) bool {
	switch {
	case p.ShadowedBy != "":
		return false
	case prompt == PromptDetach:
		return p.Attached && !o.Hides(p)
	default:
		return !p.Attached && p.Valid && !o.opts.Forbids(call.KindAttach, p.ID)
	}
}

// IsForModels reports whether a model may know about an attached pack.
func (o *Offer) IsForModels(p *packs.Pack) bool { return address.IsOffered(p) && !o.Hides(p) }

// Packs returns the packs that a model may know about, by id.
func (o *Offer) Packs(catalog *packs.Catalog) []*packs.Pack {
	return slices.DeleteFunc(forModels(catalog), o.Hides)
}

// Pack finds an attached pack for a call by its id, its name or its URI, or returns
// an error that says what to do instead.
func (o *Offer) Pack(catalog *packs.Catalog, id string) (*packs.Pack, error) {
	id = address.PackAt(catalog, id)
	p, err := catalog.LookupAttached(id)
	if err != nil {
		// A caller that knows the id of a pack that is not attached is told about it,
		// but such a pack is never suggested.
		var other error
		if p, other = catalog.Lookup(id); other != nil {
			return nil, toolerr.NamingOnly(err, func(id string) bool {
				near := catalog.ByID(id)
				return near != nil && o.IsForModels(near)
			})
		}
	}
	switch {
	case !p.Valid:
		e := toolerr.New(toolerr.CodeNotAttached, "Tell the user; the pack cannot be used until this is mended.", "pack %q is not valid", p.ID)
		e.Problems, e.Folder = p.Problems, p.Folder()
		return nil, e
	case !p.Attached:
		return nil, toolerr.New(toolerr.CodeNotAttached, fmt.Sprintf("Ask the user to attach it: packs-mcp attach %s", p.ID), "pack %q is not attached", p.ID)
	case p.Frontmatter.DisableModelInvocation():
		return nil, toolerr.New(toolerr.CodeNotAttached, "Only the user can call on it.", "pack %q asks not to be used by models on their own", p.ID)
	case !p.Offered:
		return nil, toolerr.New(toolerr.CodeNotAttached, "The pack is meant for another mode; the user can change it with mode: in the configuration.", "pack %q is not offered in this mode", p.ID)
	}
	return p, nil
}

// Skills returns the packs of a Catalog that are skills, sorted by the URIs of their
// documents, without those that rules hide.
func (o *Offer) Skills(catalog *packs.Catalog) []*packs.Pack {
	var all []*packs.Pack
	for _, d := range documents(catalog) {
		if d.Pack != nil && address.IsSkill(d.Pack) && o.ShowsFiles(d.Pack) {
			all = append(all, d.Pack)
		}
	}
	return all
}

// Origin returns who offers a pack.
func (o *Offer) Origin(p *packs.Pack) Origin {
	if o.opts.Origin == nil {
		return Origin{}
	}
	return o.opts.Origin(p.Dir)
}

// An Entry is an entry of a list before it is put in words. Lists are sorted by Key
// and cut into pages by it.
type Entry struct {
	Key  string      // the URI of a document, or the name of a prompt
	Pack *packs.Pack // nil if the entry belongs to no pack
}

// String returns the key.
func (e Entry) String() string { return e.Key }

func sortEntries(all []Entry) []Entry {
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// Describe makes a description safe to show as metadata: one line, escaped, and cut
// at the limit.
func (o *Offer) Describe(text string) string {
	text = safetext.Line(strings.Join(strings.Fields(text), " "))
	return safetext.Shorten(text, o.opts.Description)
}

// DescribeLines is Describe for a place that keeps line breaks, such as a tool's
// paragraphs and examples. Several empty lines become one.
func (o *Offer) DescribeLines(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = safetext.Text(strings.TrimRight(line, " \t\r\n"))
		if line != "" || lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	return safetext.Shorten(strings.Join(lines, "\n"), o.opts.Description)
}

// OwnTools splits the packs that a model may open, for a configuration that gives
// each pack a tool of its own: those that get one, at most as many as the tools that
// a chat may enable, and the rest.
func (o *Offer) OwnTools(catalog *packs.Catalog, most int) (listed, rest []*packs.Pack) {
	all := slices.DeleteFunc(o.Packs(catalog), func(p *packs.Pack) bool { return !o.MayOpen(p) })
	n := min(len(all), most)
	return all[:n:n], all[n:]
}
