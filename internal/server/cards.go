package server

// Cards in a client's chat, by MCP Apps: in place of its own form for a question, and
// beside the result of a tool in a client that cannot ask.

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/card"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// appsSettings returns what the server declares about MCP Apps.
func appsSettings() map[string]any {
	return map[string]any{"mimeTypes": []string{wire.AppsMIME}, "elicitation": map[string]any{}}
}

// showsCards reports whether the client of a request has the tools for cards.
func (s *Server) showsCards(ctx context.Context) bool {
	ch, sess, ok := chats.Of(ctx)
	return ok && s.opts.Cards && s.opts.Gate.ShowsInChat(s.road.Caller(ctx, "", ch, sess))
}

func approvalsTool() *baseTool {
	return &baseTool{
		name:  toolname.Approvals,
		title: "Show what waits for approval",
		description: fixed("Show the user a card with the calls that wait for their approval. Call it when a call returned approval_pending. " +
			"The user answers on the card; then make the same call again."),
		input:       `{"type":"object","properties":{},"additionalProperties":false}`,
		output:      `{"type":"object","properties":{"waiting":{"type":"integer"},"hint":{"type":"string"},` + toolerr.Property + `}}`,
		annotations: readOnly("Show what waits for approval"),
		meta:        map[string]any{"anthropic/alwaysLoad": true, "ui": map[string]any{"resourceUri": calls.CardURI, "visibility": []string{"model"}}},
		cards:       true,
		prepare:     (*Server).prepareApprovals,
	}
}

func decideTool() *baseTool {
	no, yes := false, true
	return &baseTool{
		name:        toolname.Decide,
		title:       "Answer on the approval card",
		description: fixed("Only for the user's approval card, which has a secret code. Not for models: a call without the code denies everything that waits."),
		input: `{"type":"object","properties":{"secret":{"type":"string"},"decision":{"type":"string","enum":["once","deny"]}},` +
			`"required":["secret","decision"],"additionalProperties":false}`,
		output:      `{"type":"object","properties":{"recorded":{"type":"boolean"},` + toolerr.Property + `}}`,
		annotations: mcp.ToolAnnotation{Title: "Answer on the approval card", ReadOnlyHint: &no, DestructiveHint: &yes, IdempotentHint: &no, OpenWorldHint: &no},
		meta:        map[string]any{"ui": map[string]any{"visibility": []string{"app"}}},
		cards:       true,
		prepare:     (*Server).prepareDecide,
	}
}

// A waitingResult says how many calls wait. The card gets their facts.
type waitingResult struct {
	Waiting int    `json:"waiting"`
	Hint    string `json:"hint"`

	card map[string]any
}

func (*waitingResult) Failed() bool { return false }
func (r *waitingResult) Meta() *mcp.Meta {
	return mcp.NewMetaFromMap(map[string]any{calls.CardKey: r.card})
}

// errNoCards returns the error of a card tool if the client shows no cards.
func errNoCards() error {
	return toolerr.New(toolerr.CodeNotFound, "Tell the user which call waits, and its approval_code if it has one.", "this client shows no approval cards, or gave wrong answers on them")
}

func (s *Server) prepareApprovals(_ context.Context, c *calls.Call) (*calls.Action, error) {
	var none struct{}
	if err := c.Decode(&none); err != nil {
		return nil, err
	}
	if !s.opts.Gate.ShowsInChat(c.Caller) {
		return nil, errNoCards()
	}
	return &calls.Action{
		Request: gate.Request{Caller: c.Caller, Kind: gate.KindList, Method: c.Method.Name, Arguments: c.Args.Whole(), Logged: c.Logged(s.secrets)},
		Perform: func(context.Context, *gate.Permit) (any, error) {
			questions := []card.Question{}
			for _, q := range s.opts.Gate.InChat(c.Caller) {
				questions = append(questions, card.Question{
					Kind: string(q.Kind), Card: q.Card, Choices: card.Choices(q.Choices), See: q.See, Limit: q.Limit, Secret: q.Secret, Expires: q.Expires,
				})
			}
			out := &waitingResult{Waiting: len(questions), card: map[string]any{"questions": questions, "decide": s.exposed(toolname.Decide)}}
			out.Hint = "The user sees the card. Wait until they say that they have answered; then make the same call again."
			if len(questions) == 0 {
				out.Hint = "No call waits. If one returned approval_pending, make it again."
			}
			return out, nil
		},
	}, nil
}

// prepareDecide accepts an answer from the card. The secret is not logged.
func (s *Server) prepareDecide(_ context.Context, c *calls.Call) (*calls.Action, error) {
	if !s.opts.Gate.ShowsInChat(c.Caller) {
		return nil, errNoCards()
	}
	// What cannot be read counts as a wrong answer: it did not come from the card.
	var p struct {
		Secret   string `json:"secret"`
		Decision string `json:"decision"`
	}
	_ = c.Decode(&p)
	said := gate.NewArguments(strictjson.NewObject(callargs.Text("decision", safetext.Shorten(p.Decision, toolerr.MaxQuoted))))
	return &calls.Action{
		Request: gate.Request{Caller: c.Caller, Kind: gate.KindList, Method: c.Method.Name, Arguments: said, Logged: said.Compact()},
		Perform: func(context.Context, *gate.Permit) (any, error) {
			return map[string]bool{"recorded": s.opts.Gate.DecideInChat(c.Caller, p.Secret, p.Decision)}, nil
		},
	}, nil
}
