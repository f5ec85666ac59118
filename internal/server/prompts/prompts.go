// Package prompts answers the requests about prompts: a pack's own, which opens it, and
// those with which a person attaches a pack to a chat or detaches it.
//
// It does not decide whether the client's word for a person's act is enough, nor ask;
// package gate does, on the road of package calls.
package prompts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/spans"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Options are what [Prompts] are made of. All are required.
type Options struct {
	Road     *calls.Road
	Chats    *chats.Chats
	Offer    *offer.Offer
	Given    *given.Giver
	Tools    *toolfiles.Files
	Secrets  *redact.Secrets          // left out of the log
	PageMax  int64                    // bytes of a document with its arguments
	OpenDocs string                   // the name of the tool that opens packs
	ToolsOf  func(*packs.Pack) string // names a pack's tools behind its document; empty if it has none
}

// Prompts answer requests. They are safe for concurrent use.
type Prompts struct{ opts Options }

// New returns Prompts.
func New(o Options) *Prompts { return &Prompts{o} }

type promptsResult struct {
	calls.PageResult
	Prompts []mcp.Prompt `json:"prompts"`
}

// List answers prompts/list: one prompt for each pack, and those with which a
// person attaches and detaches.
func (s *Prompts) List(ctx context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
	var p calls.CursorParams
	if err := r.Decode(&p); err != nil {
		return nil, err
	}
	page, next, err := pages.Of("prompts", p.Cursor, s.opts.Offer.Prompts(r.Chat.Lists.GiveCatalog(ctx)), offer.Entry.String)
	if err != nil {
		return nil, err
	}
	return &promptsResult{PageResult: calls.PageResult{NextCursor: next}, Prompts: s.opts.Offer.AsPrompts(page)}, nil
}

type getPromptParams struct {
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments"`
}

func (p *getPromptParams) tree() *strictjson.Node {
	arguments := new(strictjson.Node) // null
	if p.Arguments != nil {
		var all []strictjson.Member
		for _, name := range slices.Sorted(maps.Keys(p.Arguments)) {
			all = append(all, callargs.Text(name, p.Arguments[name]))
		}
		arguments = strictjson.NewObject(all...)
	}
	return strictjson.NewObject(callargs.Text("name", p.Name), strictjson.Member{Key: "arguments", Value: arguments})
}

type getPromptRequest struct {
	getPromptParams
	calls.RoundTrip
}

// Get answers prompts/get, which by the protocol is a person's own act. It is
// recorded as what it does. The gate decides whether the client's word for that is
// enough, or a person is asked.
func (s *Prompts) Get(ctx context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
	var p getPromptRequest
	if err := r.Decode(&p); err != nil {
		return nil, err
	}
	method := &calls.Method{Name: string(mcp.MethodPromptsGet)}
	known := offer.ArgPack
	switch p.Name {
	case offer.PromptAttach, offer.PromptDetach:
		method.Prepare = s.prepareAttach
	default:
		known = offer.ArgWords
		method.Prepare = s.prepareInvocation
		if offer.PromptOf(r.Catalog, p.Name) == nil {
			return nil, s.opts.Road.RefusedRequest(ctx, r, toolerr.CodeNotFound, p.Name, noPrompt(p.Name))
		}
	}
	for name := range p.Arguments {
		if name != known {
			return nil, &toolerr.RPCError{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("the prompt %q has no argument %q", safetext.Line(p.Name), safetext.Line(name))}
		}
	}
	spans.From(ctx).Prompt(p.Name)
	if _, sess, ok := chats.Of(ctx); ok && fillsIn(sess.GetClientInfo().Name, p.Arguments[known]) {
		return s.template(r.Catalog, p.Name), nil
	}
	out, question, err := s.opts.Road.Pass(ctx, method, p.tree(), p.RoundTrip, func(c *calls.Call) { c.Caller.Act = true })
	switch {
	case err != nil:
		return nil, err
	case question != nil:
		return question, nil
	}
	return out.(*mcp.GetPromptResult), nil
}

// fillsIn reports whether a client asks for a prompt only to fill in its user's words
// later. opencode does so for each prompt when it starts: it passes the placeholder
// "$1", and does not ask again when its user chooses the prompt.
func fillsIn(client, argument string) bool { return client == "opencode" && argument == "$1" }

// template returns a prompt with the placeholder, for [fillsIn]. Nobody has chosen
// the prompt, so it opens nothing: if somebody chooses it later, the model makes a
// call.
func (s *Prompts) template(catalog *packs.Catalog, name string) *mcp.GetPromptResult {
	switch p := offer.PromptOf(catalog, name); {
	case p != nil && !address.IsOffered(p):
		return userMessage(s.opts.Offer.Describe(p.Description), fmt.Sprintf(
			"The capability pack %s is opened by its prompt alone, and this client asks for prompts before anybody chooses one. Tell me that it cannot be used here.", p.ID))
	case p != nil:
		return userMessage(s.opts.Offer.Describe(p.Description), fmt.Sprintf("Use the capability pack %s: open it with %s, and apply it to what follows.\n\n$1", p.ID, s.opts.OpenDocs))
	}
	return userMessage("Packs are attached elsewhere.",
		"This prompt does not work here. Tell me that I can attach and detach the pack $1 on the approval page, which this command opens: packs-mcp approvals open")
}

func noPrompt(name string) *toolerr.RPCError {
	return &toolerr.RPCError{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("there is no prompt %q", safetext.Shorten(safetext.Line(name), 100))}
}

// prepareInvocation finds out what a pack's prompt says.
func (s *Prompts) prepareInvocation(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	var p getPromptParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	pack := offer.PromptOf(c.Catalog, p.Name)
	if pack == nil {
		return nil, noPrompt(p.Name)
	}
	facts, tree, err := s.opts.Given.Facts(ctx, pack)
	if err != nil {
		return nil, err
	}
	body, err := s.body(pack, tree)
	if err != nil {
		return nil, err
	}
	words := p.Arguments[offer.ArgWords]
	if n := given.FilledSize(body, words); int64(n) > s.opts.PageMax {
		return nil, toolerr.New(toolerr.CodeTooLarge, "Pass shorter arguments.", "the document with its arguments filled in has %d bytes, and at most %d are given", n, s.opts.PageMax)
	}
	return &calls.Action{
		Request: gate.Request{
			Caller: c.Caller, Kind: gate.KindOpen, Method: c.Method.Name, Pack: facts,
			Arguments: c.Args.Whole(), Logged: c.Logged(s.opts.Secrets), Hidden: given.Hidden([]byte(body)),
		},
		Perform: func(ctx context.Context, permit *gate.Permit) (any, error) {
			if err := s.opts.Road.SameAs(ctx, c, pack, permit, false); err != nil {
				return nil, err
			}
			c.Opens = true
			return userMessage(s.opts.Offer.Describe(pack.Description), given.Part{}.Fill(pack.Folder(), body, words)+s.opts.ToolsOf(pack)), nil
		},
	}, nil
}

// body returns the whole entry document without its frontmatter, made of the bytes
// that were digested.
func (s *Prompts) body(pack *packs.Pack, tree *packfs.Tree) (string, error) {
	dir, err := pack.OpenDir()
	if err != nil {
		return "", err
	}
	defer dir.Close()
	page, err := s.opts.Given.BodyPage(dir, pack, tree, 0, s.opts.PageMax)
	if err != nil {
		return "", err
	}
	if page.Truncated {
		return "", toolerr.New(toolerr.CodeTooLarge, "Open it with "+s.opts.OpenDocs+", which gives it by pages.", "the document has %d bytes, and a prompt has at most %d", page.Size, s.opts.PageMax)
	}
	text, _ := page.Text()
	return strings.ToValidUTF8(string(text), "\ufffd"), nil
}

// userMessage returns a prompt with one message of the user's.
func userMessage(description, text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Description: description, Messages: []mcp.PromptMessage{
		{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)},
	}}
}

// prepareAttach finds out which pack a person attaches to this chat, or detaches from
// it.
func (s *Prompts) prepareAttach(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	var p getPromptParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	on := p.Name == offer.PromptAttach
	pack, err := c.Catalog.Lookup(p.Arguments[offer.ArgPack])
	if err != nil {
		e := s.opts.Road.Explain(toolerr.NamingOnly(err, func(id string) bool {
			near, err := c.Catalog.Lookup(id)
			return err == nil && s.opts.Offer.MayChoose(p.Name, near)
		}), c.ID)
		e.Hint = "packs-mcp list --all says which packs there are."
		return nil, e
	}
	req := gate.Request{
		Caller: c.Caller, Kind: gate.KindDetach, Method: c.Method.Name, Pack: gate.Pack{ID: pack.ID, Dir: "", Trust: gate.Trust(pack.Trust)},
		Arguments: c.Args.Whole(), Logged: c.Logged(s.opts.Secrets),
	}
	if on {
		req.Kind = gate.KindAttach
		if !pack.Valid {
			return nil, toolerr.New(toolerr.CodeInvalidArguments, "packs-mcp validate says what to mend.", "pack %q is not valid", pack.ID)
		}
		if req.Pack, _, err = s.opts.Given.Facts(ctx, pack); err != nil {
			return nil, err
		}
	}
	return &calls.Action{Request: req, Perform: func(ctx context.Context, _ *gate.Permit) (any, error) {
		if err := s.opts.Chats.SetAttached(ctx, c.Chat.ID(), pack.ID, on); err != nil {
			return nil, err
		}
		if !on {
			return userMessage("The pack is detached.", fmt.Sprintf("I detached the capability pack %s from this chat: do not use it, or its tools, any more.", pack.ID)), nil
		}
		text := fmt.Sprintf("I attached a capability pack to this chat:\n- pack_id: %s\n  name: %s\n  description: %s\n  has_tools_json: %t\n",
			pack.ID, safetext.Line(pack.Name), s.opts.Offer.Describe(pack.Description), s.opts.Tools.HasTools(pack))
		switch {
		case !pack.Offered:
			text += "It is meant for another mode, so it cannot be used now."
		case !address.IsOffered(pack):
			text += "Only I call on it, by its own prompt."
		default:
			text += fmt.Sprintf("Open it with %s when it fits what I ask for.", s.opts.OpenDocs)
		}
		return userMessage("The pack is attached.", text), nil
	}}, nil
}
