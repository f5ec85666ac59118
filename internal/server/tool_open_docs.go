package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

type openDocsParams struct {
	PackID string `json:"pack_id"`
	// Arguments asks for the document as an invocation with these words; nil asks for
	// the document itself.
	Arguments *string `json:"arguments"`
	// Offset is where the page begins, in bytes of the file.
	Offset int64 `json:"offset"`
}

type openDocsResult struct {
	Folder         string     `json:"folder"` // absolute; the document's paths are relative to it
	EntryDoc       document   `json:"entry_doc"`
	AdditionalDocs []document `json:"additional_docs,omitempty"`

	part     given.Part
	hidden   string // how many invisible characters they have, in words; empty for none
	compared bool   // all of it was compared with what was digested; see [calls.Road.SameAs]
}

type document struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	Truncated  bool   `json:"truncated,omitempty"`
	NextOffset int64  `json:"next_offset,omitempty"`
	Note       string `json:"note,omitempty"` // what is unusual about the document
}

func openDocsTool() *baseTool {
	return &baseTool{
		name:  toolname.OpenDocs,
		title: "Open a pack's documents",
		description: fixed("Open a pack's entry document: how and when to use the pack. Do this first. " +
			"If truncated, go on with offset: next_offset. With arguments, the document is filled in for that task."),
		input: `{"type":"object","properties":{` +
			`"pack_id":{"type":"string","description":"as listed"},` +
			`"arguments":{"type":"string","description":"what to apply the pack to; replaces $ARGUMENTS"},` +
			`"offset":{"type":"integer","minimum":0}},` +
			`"required":["pack_id"],"additionalProperties":false}`,
		output:      `{"type":"object","properties":{"folder":{"type":"string"},"entry_doc":` + documentSchema + `,"additional_docs":{"type":"array","items":` + documentSchema + `},` + toolerr.Property + `}}`,
		annotations: readOnly("Open a pack's documents"),
		prepare:     (*Server).prepareOpenDocs,
	}
}

const documentSchema = `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},` +
	`"truncated":{"type":"boolean"},"next_offset":{"type":"integer"},"note":{"type":"string"}},"required":["path","content"]}`

func (s *Server) prepareOpenDocs(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	var p openDocsParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	if err := c.Require("pack_id", p.PackID); err != nil {
		return nil, err
	}
	return s.openDocs(ctx, c, &p)
}

// openDocs finds out what a call would open.
func (s *Server) openDocs(ctx context.Context, c *calls.Call, p *openDocsParams) (*calls.Action, error) {
	pack, err := s.offer.Pack(c.Catalog, p.PackID)
	if err != nil {
		return nil, err
	}
	facts, tree, err := s.given.Facts(ctx, pack)
	if err != nil {
		return nil, err
	}
	// Read it before the question, so that the person learns about hidden characters.
	docs, err := s.documents(pack, tree, p)
	if err != nil {
		return nil, err
	}
	if p.Arguments != nil {
		// Each $ARGUMENTS is replaced by a copy of the arguments.
		if n := given.FilledSize(docs.EntryDoc.Content, *p.Arguments); int64(n) > s.limits.ReadPageMax {
			return nil, toolerr.New(toolerr.CodeTooLarge, "Pass shorter arguments, or open the document without any.", "the document with its arguments filled in has %d bytes, and at most %d are given", n, s.limits.ReadPageMax)
		}
	}
	return &calls.Action{
		Request: gate.Request{
			Caller: c.Caller, Kind: gate.KindOpen, Method: c.Method.Name, Pack: facts,
			Arguments: c.Args.Whole(), Logged: c.Logged(s.secrets), Hidden: docs.hidden,
		},
		Perform: func(ctx context.Context, permit *gate.Permit) (any, error) {
			if err := s.road.SameAs(ctx, c, pack, permit, docs.compared); err != nil {
				return nil, err
			}
			if p.Arguments != nil {
				docs.EntryDoc.Content = docs.part.Fill(pack.Folder(), docs.EntryDoc.Content, *p.Arguments) + s.toolsSentence(pack, docs.EntryDoc.Truncated)
			}
			c.Opens = p.Offset == 0
			return docs, nil
		},
	}, nil
}

// documents reads a page of the entry document and, with the first page, the
// documents that the user configured in addition.
func (s *Server) documents(pack *packs.Pack, tree *packfs.Tree, p *openDocsParams) (out openDocsResult, _ error) {
	dir, err := pack.OpenDir()
	if err != nil {
		return out, err
	}
	defer dir.Close()
	page, err := s.given.BodyPage(dir, pack, tree, p.Offset, s.limits.OpenPage)
	if err != nil {
		return out, err
	}
	out.compared = page.Verified
	if p.Arguments != nil {
		given.EndBeforePlaceholder(page)
		out.part = given.Part{Later: p.Offset > 0, Truncated: page.Truncated}
		if out.part.Later && !page.Truncated && *p.Arguments != "" {
			// The end depends on whether the document has a place for the arguments.
			var verified bool
			if out.part.Placed, verified, err = s.given.HasPlaceholder(dir, pack, tree, page.Offset); err != nil {
				return out, err
			}
			out.compared = out.compared && verified
		}
	}
	out.Folder, out.EntryDoc = pack.Folder(), documentOf(page)
	invisible := safetext.Inspect([]byte(out.EntryDoc.Content))
	additional := pack.Docs()
	if p.Offset > 0 {
		additional = nil
	}
	for _, name := range additional {
		page, err := s.given.Page(dir, tree, name, 0, s.limits.OpenPage)
		if toolerr.IsMissing(err) {
			out.AdditionalDocs = append(out.AdditionalDocs, document{Path: name, Note: "The user's configuration names this document, but it is not a file of the pack that can be read."})
			continue
		}
		if err != nil {
			return out, err
		}
		doc := documentOf(page)
		out.AdditionalDocs = append(out.AdditionalDocs, doc)
		out.compared = out.compared && page.Verified
		invisible = invisible.Plus(safetext.Inspect([]byte(doc.Content)))
	}
	if invisible.Total() > 0 {
		out.hidden = invisible.String()
	}
	return out, nil
}

func documentOf(p *packfs.Page) document {
	text, _ := p.Text()
	return document{Path: p.Path, Content: string(text), Truncated: p.Truncated, NextOffset: p.NextOffset, Note: noteOf(p)}
}

// noteOf says what is unusual about a page; empty for nothing.
func noteOf(p *packfs.Page) string {
	if p.Charset == charset.UTF8 {
		return ""
	}
	return "The file is " + string(p.Charset) + "; this is its text. Offsets count its bytes."
}

// toolsSentence returns a sentence to put after a pack's document. It names the
// pack's tools, since the document may refer to them. It is empty if there are more
// pages.
func (s *Server) toolsSentence(pack *packs.Pack, more bool) string {
	set, _, err := s.files.Offered(pack)
	if more || err != nil || set == nil {
		return ""
	}
	var names []string
	for _, t := range set.Tools {
		if t.Command != nil {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("\n\nTools of this pack, after %s(pack_id: %q): %s", s.exposed(toolname.Enable), pack.ID, strings.Join(names, ", "))
}

// fixed returns a function for a description that does not change.
func fixed(text string) func(*Server, *packs.Catalog, *toolfiles.Once) string {
	return func(*Server, *packs.Catalog, *toolfiles.Once) string { return text }
}
