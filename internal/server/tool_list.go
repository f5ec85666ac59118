package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/entrydoc"
	"github.com/packs-mcp/packs-mcp/internal/packs/search"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// Bounds of a page. What a pack says about itself, and what is wrong with it, is cut,
// so that the size of a page is bounded whatever packs there are. A person can see
// all of it with packs-mcp show.
const (
	listPage        = 20  // packs
	maxNotValid     = 20  // packs
	maxListProblems = 3   // of a pack
	maxListLine     = 200 // characters of a problem, and of a name
	maxListTags     = 10  // of a pack
	maxListTag      = 50  // characters
	maxListCopies   = 10  // of packs that match a query
)

type listParams struct {
	Query  string `json:"query"`
	Cursor string `json:"cursor"`
}

type listResult struct {
	Packs      []listedPack `json:"packs"`
	NextCursor string       `json:"next_cursor,omitempty"`
	// NotValid are attached packs that cannot be used as they are now. They are on
	// the first page; for a query, they are those whose id or name contains one of
	// its words.
	NotValid []notValidPack `json:"not_valid,omitempty"`
	Hint     string         `json:"hint,omitempty"` // what to do if a query found nothing, or not all packs have been read yet
}

type notValidPack struct {
	PackID   string   `json:"pack_id"`
	Problems []string `json:"problems"`
}

type listedPack struct {
	PackID       string   `json:"pack_id"`
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	HasToolsJSON bool     `json:"has_tools_json"`
	Source       string   `json:"source"`
	From         string   `json:"from,omitempty"`       // "[rulebook]" or "[pak]": the pack was added from elsewhere
	CreatedAt    string   `json:"created_at,omitempty"` // as its provider says
	UpdatedAt    string   `json:"updated_at,omitempty"`
	Tags         []string `json:"tags,omitempty"`
	Version      string   `json:"version,omitempty"`
	License      string   `json:"license,omitempty"`
	Compatible   string   `json:"compatibility,omitempty"`
	AllowedTools string   `json:"allowed_tools,omitempty"`
	Enabled      []string `json:"enabled,omitempty"`
	Problems     []string `json:"problems,omitempty"`
	// SameAs are other packs that match a query and describe themselves in the same
	// way: one entry is enough for all of them.
	SameAs []string `json:"same_as,omitempty"`
}

func listTool() *baseTool {
	return &baseTool{
		name:  toolname.List,
		title: "List capability packs",
		description: func(s *Server, catalog *packs.Catalog, once *toolfiles.Once) string {
			text := "List the attached capability packs: names and descriptions, by page; query searches them. Never asks the user.\n\n"
			return s.offer.ListDescription(text, catalog, once)
		},
		input: `{"type":"object","properties":{` +
			`"query":{"type":"string","description":"what the pack should be about, or words of its id, name, tags, tools or description: gives the 20 packs that fit best, the best first"},` +
			`"cursor":{"type":"string","description":"next_cursor of the page before"}},"additionalProperties":false}`,
		output: `{"type":"object","properties":{"packs":{"type":"array","items":{"type":"object","properties":{` +
			`"pack_id":{"type":"string"},"name":{"type":"string"},"description":{"type":"string"},"has_tools_json":{"type":"boolean"},` +
			`"source":{"type":"string"},"from":{"type":"string"},"created_at":{"type":"string"},"updated_at":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},` +
			`"version":{"type":"string"},"license":{"type":"string"},"compatibility":{"type":"string"},"allowed_tools":{"type":"string"},"enabled":{"type":"array","items":{"type":"string"}},` +
			`"problems":{"type":"array","items":{"type":"string"}},"same_as":{"type":"array","items":{"type":"string"}}},"required":["pack_id","name","description","has_tools_json","source"]}},` +
			`"next_cursor":{"type":"string"},"hint":{"type":"string"},"not_valid":{"type":"array","items":{"type":"object","properties":{` +
			`"pack_id":{"type":"string"},"problems":{"type":"array","items":{"type":"string"}}},"required":["pack_id","problems"]}},` + toolerr.Property + `}}`,
		annotations: readOnly("List capability packs"),
		prepare:     (*Server).prepareList,
	}
}

func (s *Server) prepareList(_ context.Context, c *calls.Call) (*calls.Action, error) {
	var p listParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	query := strings.TrimSpace(p.Query)
	after, err := pages.After(toolname.List, p.Cursor)
	if err != nil {
		return nil, toolerr.New(toolerr.CodeInvalidArguments, "Leave the cursor out to begin again.", "the cursor is not one of this list")
	}
	if query != "" && p.Cursor != "" {
		return nil, toolerr.New(toolerr.CodeInvalidArguments, "Leave the cursor out, and name better words.", "a query has one page, so it has no cursor")
	}
	return &calls.Action{
		Request: gate.Request{Caller: c.Caller, Kind: gate.KindList, Method: c.Method.Name, Arguments: c.Args.Whole(), Logged: c.Logged(s.secrets)},
		Perform: func(ctx context.Context, _ *gate.Permit) (any, error) {
			var out listResult
			if query != "" {
				out = s.matching(ctx, c, query)
			} else {
				out = s.list(c, after)
			}
			if p.Cursor == "" {
				out.NotValid = s.notValid(c, query)
				out.Hint = strings.TrimSpace(out.Hint + " " + unreadHint(c.Catalog))
			}
			return out, nil
		},
	}, nil
}

// matching lists the packs that match a query, best first.
func (s *Server) matching(ctx context.Context, c *calls.Call, query string) listResult {
	out := listResult{Packs: []listedPack{}}
	shown := func(id string) *packs.Pack {
		if p := c.Catalog.ByID(id); p != nil && s.offer.IsForModels(p) {
			return p
		}
		return nil
	}
	for _, m := range s.finder.Best(ctx, query, listPage, shown) {
		l := s.listed(c, m.Pack)
		for _, p := range m.Copies[:min(len(m.Copies), maxListCopies)] {
			l.SameAs = append(l.SameAs, p.ID)
		}
		out.Packs = append(out.Packs, l)
	}
	if len(out.Packs) == 0 {
		out.Hint = "No attached pack has any of these words in its id, name, tags, tools or description. Try other words or their beginnings, or leave the query out to see all packs."
	}
	return out
}

// unreadHint says how many attached packs have not been read yet; empty for none. It
// does not say which: some may be for persons only.
func unreadHint(catalog *packs.Catalog) string {
	n := 0
	for _, p := range catalog.All() {
		if p.Attached && p.IsUnread() {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 more pack was not read yet. List again in a minute."
	}
	return fmt.Sprintf("%d more packs were not read yet. List again in a minute.", n)
}

// list lists all packs by id, starting after the id after.
func (s *Server) list(c *calls.Call, after string) listResult {
	out := listResult{Packs: []listedPack{}}
	for _, p := range s.offer.Packs(c.Catalog) {
		if p.ID <= after {
			continue
		}
		if len(out.Packs) == listPage {
			out.NextCursor = pages.Cursor(toolname.List, out.Packs[listPage-1].PackID)
			break
		}
		out.Packs = append(out.Packs, s.listed(c, p))
	}
	return out
}

// notValid returns the attached packs that are not valid, and says why: somebody who
// used one a moment ago looks for it here. With a query, it returns only those that
// the query names. A pack that cannot be read may be for persons only, so it is
// returned only if the chat already has tools of it.
func (s *Server) notValid(c *calls.Call, query string) []notValidPack {
	var all []notValidPack
	names := search.Names(query)
	for _, p := range c.Catalog.All() {
		if len(all) == maxNotValid {
			break
		}
		if p.Valid || !p.Attached || !p.Offered || p.ShadowedBy != "" || !address.IsOffered(p) || s.offer.Hides(p) {
			continue
		}
		if p.Frontmatter.IsZero() && !p.Loose && !c.Chat.Enabled.Knows(p.ID) {
			continue
		}
		if query != "" && !names(p.ID+" "+p.Name) {
			continue
		}
		all = append(all, notValidPack{PackID: safetext.Line(p.ID), Problems: fewLines(p.ID, p.Problems)})
	}
	return all
}

func (s *Server) listed(c *calls.Call, p *packs.Pack) listedPack {
	hasTools, problems := s.inspect(p)
	l := listedPack{
		PackID: p.ID, Name: safetext.Shorten(safetext.Line(p.Name), maxListLine), Description: s.offer.Describe(p.Description),
		HasToolsJSON: hasTools, Source: p.Source, Enabled: s.resolver.Names(c.Catalog, &c.Chat.Enabled, p.ID),
		Problems: fewLines(p.ID, problems),
	}
	from := s.offer.Origin(p)
	l.From, l.CreatedAt, l.UpdatedAt = from.Label, from.CreatedAt, from.UpdatedAt
	m := entrydoc.MetadataOf(p)
	line := func(text string) string { return safetext.Shorten(safetext.Line(text), maxListLine) }
	l.Version, l.License, l.Compatible, l.AllowedTools = line(m.Version), line(m.License), line(m.Compatibility), line(m.AllowedTools)
	tags := p.Tags()
	for _, t := range tags[:min(len(tags), maxListTags)] {
		l.Tags = append(l.Tags, safetext.Shorten(safetext.Line(t), maxListTag))
	}
	return l
}

// fewLines returns the first of a pack's problems as a model gets them, and how many
// more there are. Problems that make something unusable come first.
func fewLines(id string, problems []diag.Diagnostic) []string {
	worst := slices.Clone(problems)
	slices.SortStableFunc(worst, func(a, b diag.Diagnostic) int { return rank(a) - rank(b) })
	few := lines(worst[:min(len(worst), maxListProblems)])
	for i := range few {
		few[i] = safetext.Shorten(few[i], maxListLine)
	}
	if more := len(problems) - len(few); more > 0 {
		few = append(few, fmt.Sprintf("and %d more: packs-mcp show %s", more, safetext.Line(id)))
	}
	return few
}

func rank(d diag.Diagnostic) int {
	if d.Severity == diag.Error {
		return 0
	}
	return 1
}

// inspect reports whether a pack has a tool that can be enabled, and returns what is
// wrong with the pack and its tools.
func (s *Server) inspect(p *packs.Pack) (hasTools bool, problems []diag.Diagnostic) {
	hasTools, more, err := s.files.Look(p)
	problems = slices.Concat(p.Problems, more)
	if err != nil {
		problems = append(problems, diag.Diagnostic{Code: packs.CodeToolsUnreadable, Severity: diag.Error, Message: err.Error()})
	}
	return hasTools, problems
}

// lines returns diagnostics as they are shown, escaped.
func lines(problems []diag.Diagnostic) []string {
	var all []string
	for _, d := range problems {
		all = append(all, safetext.Line(d.String()))
	}
	return all
}

func readOnly(title string) mcp.ToolAnnotation {
	yes, no := true, false
	return mcp.ToolAnnotation{Title: title, ReadOnlyHint: &yes, DestructiveHint: &no, IdempotentHint: &yes, OpenWorldHint: &no}
}
