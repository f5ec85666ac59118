package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/internal/server/toolresult"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
	"github.com/packs-mcp/packs-mcp/internal/spans"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A baseTool is one of the tools that are always there, or a method other than
// tools/call that is handled the same way. A method uses only name, input and
// prepare.
type baseTool struct {
	name        string // plain name, see [Server.exposed]; or the method
	title       string
	description func(*Server, *packs.Catalog, *toolfiles.Once) string
	input       string // JSON Schema
	output      string // JSON Schema
	annotations mcp.ToolAnnotation
	meta        map[string]any // what a list says besides; nil: the same as for the other tools
	cards       bool           // only for clients that show cards; see [Server.showsCards]
	// prepare decodes the arguments and finds out what the call would do. It changes
	// nothing. See [Server.prepareNow].
	prepare func(*Server, context.Context, *call) (*action, error)
}

// A call is one tools/call, or another request that the gate decides about, while it
// is being handled.
type call struct {
	id      string // for the logs
	tool    *baseTool
	chat    *chats.Chat
	caller  gate.Caller
	catalog *packs.Catalog // the catalog that this call keeps
	args    *callargs.Arguments
	checked *checked // see check
	log     logged   // see logged
	meta    *mcp.Meta
	// filled holds the values that a person gave for the context that the tool needs,
	// by the names of the question's fields; nil before that.
	filled map[string]string
	// missing is the context that the tool needs, for when nobody can be asked for
	// it; nil: nothing.
	missing   *tools.MissingContextError
	workspace *workspace.Workspace // the workspace that the call is about; nil: the chat's first
	ended     int                  // how many runs had ended when the call was last prepared; see [run.confirm]

	opens bool   // the call shows a pack's document from its beginning
	note  string // what the model should know besides the result; empty: nothing

	telling sync.Mutex
	told    int // progress notifications sent so far; guarded by telling
}

// An action is a call that was understood: what a person is asked about it, and the
// function that does the work, which needs the permit.
type action struct {
	request gate.Request
	perform func(context.Context, *gate.Permit) (any, error)
}

// contextKey is the key under which a client may say what its user looks at.
const contextKey = "packs-mcp/context"

// call handles every tool call. It recovers from panics; their texts go to the log
// and not to the client.
func (s *Server) call(ctx context.Context, req mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
	id := wire.NewReference()
	fails := func(e *toolerr.Error) *mcp.CallToolResult {
		spans.From(ctx).ToolFailed(e.Code)
		return onceFor(ctx, toolresult.Failure(e))
	}
	defer func() {
		if r := recover(); r != nil {
			s.logger.Error("a tool call panicked", "call", id, "tool", req.Params.Name, "err", r, "stack", string(debug.Stack()))
			result = fails(&toolerr.Error{Code: toolerr.CodeInternalError, Message: wire.InternalMessage(id), Reference: id})
		}
	}()
	tool := s.base[toolname.Plain(req.Params.Name)]
	if tool == nil {
		return fails(s.explain(fmt.Errorf("the library let tool %q through", req.Params.Name), id)), nil
	}
	args := callargs.Read(req.Params.RawArguments)
	if to, ok := req.Params.Arguments.(renamed); ok {
		if to.skill != "" {
			tool = openSkillTool(to.skill, args)
		}
		args = to.in(args)
	}
	c, err := s.newCall(ctx, id, tool, args, req.Params.Meta)
	if err != nil {
		s.refusedEarly(ctx, tool.name, args, err)
		return fails(s.explain(err, id)), nil
	}
	out, question, err := s.decide(ctx, c, unaskedAnswer(ctx, req.Params.MultiRoundTripParams))
	if e, ok := errors.AsType[*toolerr.RPCError](err); ok {
		return nil, instead(ctx, e)
	}
	switch {
	case err != nil:
		return fails(s.explain(err, id)), nil
	case question != nil:
		return inputRequired(ctx, question).ToolResult(), nil
	}
	result, err = toolresult.Success(out, c.note, knowsLinks(ctx))
	if err == nil && result.IsError {
		spans.From(ctx).ToolFailed(codeOf(out))
	}
	return onceFor(ctx, result), err
}

// explain decides what a model may know about an error. An error that is not known
// here becomes an internal error with a reference, and its cause goes to the log,
// once, with the whole chain.
func (s *Server) explain(err error, callID string) *toolerr.Error {
	if e := toolerr.Known(err); e != nil {
		return e
	}
	s.logger.Error("a call failed", "call", callID, "err", err)
	return &toolerr.Error{Code: toolerr.CodeInternalError, Message: wire.InternalMessage(callID), Reference: callID}
}

// decide takes one call through the gate, and if needed to a person, and does its
// work. If it returns a question, there is no result yet: the client calls again with
// the answer.
func (s *Server) decide(ctx context.Context, c *call, answer *gate.Answer) (out any, _ *gate.Question, err error) {
	act, err := s.prepare(ctx, c)
	if err != nil {
		if answer != nil {
			if invalid := wrongAnswer(s.refuse(c, answer)); invalid != nil {
				return nil, nil, invalid
			}
		}
		if answer == nil {
			s.refused(c.caller, c.tool.name, c.args, err)
		}
		if errors.Is(err, packfs.ErrReplaced) {
			s.lookAt(ctx) // a pack that was replaced, as git does, is found again
		}
		return nil, nil, err
	}
	inform(ctx, act.request)
	act, permit, question, err := s.permit(ctx, c, act, answer)
	if question != nil || err != nil {
		return nil, question, err
	}
	if out, err = act.perform(ctx, permit); err == nil {
		c.note = c.chat.SinceOpened(act.request.Pack, c.opens)
	}
	return out, nil, err
}

// prepare finds out what a call would do with the packs as they are. It refreshes the
// Catalog once if that may be out of date: if a pack changed, or is not valid, since
// its file may have been half written when it was last read.
func (s *Server) prepare(ctx context.Context, c *call) (*action, error) {
	act, err := s.prepareNow(ctx, c)
	folder := ""
	var replaced error
	if e, ok := errors.AsType[*toolerr.OutdatedError](err); ok {
		folder, replaced = e.Pack.Folder(), e.Err
	} else if e, ok := errors.AsType[*toolerr.Error](err); ok {
		folder = e.Folder
	}
	if folder != "" {
		s.lookAt(ctx, folder)
		c.catalog = c.chat.Catalog(ctx)
		act, err = s.prepareNow(ctx, c)
		if replaced != nil && errors.Is(err, packs.ErrNotFound) {
			return act, replaced // what took its place is not a pack
		}
	}
	return act, err
}

// prepareNow prepares a call from what is there now. A call is prepared once, and
// again only if a person filled something in, or if the call waited for a person or
// for another run.
func (s *Server) prepareNow(ctx context.Context, c *call) (*action, error) {
	c.ended = s.claims.Count()
	return c.tool.prepare(s, ctx, c)
}

// lookAt looks at the packs in dirs again now, or at all packs if dirs is empty.
func (s *Server) lookAt(ctx context.Context, dirs ...string) {
	if _, err := s.opts.Library.Refresh(ctx, dirs); err != nil {
		s.logger.Debug("the packs were not scanned again", "err", err)
	}
	s.Refresh(ctx)
}

// permit takes one call through the gate, and if needed to a person. It returns what
// was allowed, or the question that the client carries to its user.
func (s *Server) permit(ctx context.Context, c *call, act *action, answer *gate.Answer) (_ *action, _ *gate.Permit, _ *gate.Question, err error) {
	deciding := spans.From(ctx).Gate()
	defer func() { deciding.End(err != nil && !errors.Is(err, gate.ErrDenied)) }()
	permit, question, err := s.opts.Gate.Check(ctx, act.request, answer)
	if denied, ok := errors.AsType[*gate.DeniedError](err); ok && denied.Unasked && c.missing != nil {
		return nil, nil, nil, c.missing // the caller can give it without a person
	}
	if invalid := wrongAnswer(err); invalid != nil {
		return nil, nil, nil, invalid
	}
	if question != nil {
		if question.Elicit && c.caller.Carries {
			s.asking(question)
			deciding.Asked()
			return nil, nil, question, nil
		}
		act, permit, err = s.askAndCheck(ctx, c, question)
	}
	if err == nil && len(act.request.Fields) > 0 {
		act, permit, err = s.fillIn(ctx, c, permit)
	}
	return act, permit, nil, err
}

// askAndCheck waits for a person and decides again. It finds out anew what the call
// would do: the answer counts only if that is still the same. If the client turns out
// not to show the question, the person is asked elsewhere.
func (s *Server) askAndCheck(ctx context.Context, c *call, q *gate.Question) (*action, *gate.Permit, error) {
	for {
		act, permit, again, err := s.askOnce(ctx, c, q)
		if again == nil {
			return act, permit, err
		}
		if again.Elicit {
			return nil, nil, errors.New("the gate answered an answer with a question for the client")
		}
		q = again
	}
}

// askOnce is askAndCheck for one question. It may return another question.
func (s *Server) askOnce(ctx context.Context, c *call, q *gate.Question) (*action, *gate.Permit, *gate.Question, error) {
	s.asking(q)
	answered := spans.From(ctx).Waiting()
	answer, err := s.ask(ctx, c, q)
	answered()
	if err != nil {
		return nil, nil, nil, err
	}
	c.catalog = c.chat.Catalog(ctx)
	// Pass a call that was cancelled meanwhile to the gate too, which denies and
	// records it.
	act, err := s.prepare(context.WithoutCancel(ctx), c)
	if err != nil {
		_ = s.refuse(c, answer) // the call cannot be made, whatever the answer
		return nil, nil, nil, err
	}
	permit, again, err := s.opts.Gate.Check(ctx, act.request, answer)
	return act, permit, again, err
}

// asking says that a question is about to be shown, or to wait elsewhere.
func (s *Server) asking(q *gate.Question) {
	if s.opts.Asking != nil {
		s.opts.Asking(q.Elicit || q.InChat)
	}
}

// fillIn makes the call with the values that the person filled in.
func (s *Server) fillIn(ctx context.Context, c *call, permit *gate.Permit) (*action, *gate.Permit, error) {
	c.filled = permit.Values()
	if c.checked != nil {
		c.checked.expanded = nil
	}
	act, err := s.prepareNow(ctx, c)
	if err != nil {
		return nil, nil, errors.Join(err, permit.Withhold("the call cannot be made with the values that were filled in", "Ask the user for other values, and call again."))
	}
	permit, err = permit.Fill(act.request)
	return act, permit, err
}

// refuse records an answer to a call that cannot be made, because what was asked
// about is gone or never existed. The answer allows nothing. refuse returns the
// denial.
func (s *Server) refuse(c *call, answer *gate.Answer) error {
	req := gate.Request{Caller: c.caller, Method: c.tool.name, Arguments: c.args.Whole()}
	err := s.opts.Gate.Refuse(req, answer, "an answer came for a call that cannot be made")
	s.logger.Debug("an answer was refused", "call", c.id, "err", err)
	return err
}

func (s *Server) newCall(ctx context.Context, id string, tool *baseTool, args *callargs.Arguments, meta *mcp.Meta) (*call, error) {
	ch, sess, ok := chats.Of(ctx)
	if !ok {
		return nil, errors.New("a call came without a session of ours")
	}
	catalog := ch.Lists.CatchUp(ctx)
	caller := s.caller(ctx, id, ch, sess)
	caller.Wait = patience(sess.GetClientInfo().Name, meta != nil && meta.ProgressToken != nil)
	ch.SetClient(caller.Client)
	spans.From(ctx).Call(id)
	c := &call{
		id: id, tool: tool, chat: ch, args: args, meta: meta,
		catalog: catalog, caller: caller,
	}
	if err := s.withoutTokens(c); err != nil {
		return nil, err
	}
	return c, nil
}

// caller returns who makes a call of a chat.
func (s *Server) caller(ctx context.Context, id string, ch *chats.Chat, sess *wire.Session) gate.Caller {
	info := sess.GetClientInfo()
	modern := mcpserver.IsModernRequest(ctx)
	return gate.Caller{
		Chat: ch.ID(), ChatEnd: ch.Ends, Call: id,
		Client: s.clientName(info.Name, info.Version), Person: ch.Person, Groups: wire.Groups(ctx), Origin: ch.Origin,
		CanAsk: sess.CanAsk() && (modern || sess.TakesQuestions()), Cards: sess.ShowsCards(), Carries: modern,
	}
}

// checked holds arguments that fit the tool's schema.
type checked struct {
	tool     *tools.Tool
	values   tools.Values
	expanded *plan.Expanded // filled into the tool's command; nil: not yet, see [Server.expand]
}

// check checks the arguments for a pack's tool against its schema. It does that once
// for each declaration of the tool, however often the call is prepared. The caller
// passes the same args each time.
func (c *call) check(tool *tools.Tool, args *strictjson.Node) (tools.Values, error) {
	if c.checked == nil || c.checked.tool != tool {
		values, err := tool.Check(args)
		if err != nil {
			return tools.Values{}, err
		}
		c.checked = &checked{tool: tool, values: values}
	}
	return c.checked.values, nil
}

// expand fills the values that check last accepted into the tool's command. It does
// that once, and again only after a person filled something in: until then, the call
// and what is known of its context are the same each time the call is prepared.
func (s *Server) expand(c *call, of *plan.Call, tool *tools.Tool, values tools.Values) (*plan.Expanded, error) {
	if c.checked.expanded == nil {
		expanded, err := s.planner.Expand(of, tool, values)
		if err != nil {
			return nil, err
		}
		c.checked.expanded = expanded
	}
	return c.checked.expanded, nil
}

// logged returns what the log keeps of the arguments: those that check last accepted
// if the tool is a pack's, otherwise all. The text is made again only if the
// arguments or the secrets to leave out have changed.
func (c *call) logged(secrets *redact.Secrets) strictjson.Compact {
	l := &c.log
	if l.text.IsZero() || l.of != c.checked || !l.secrets.Equal(secrets) {
		*l = logged{of: c.checked, secrets: secrets}
		if c.checked != nil {
			l.text = secrets.LoggedValue(c.checked.tool.Redact(c.checked.values))
		} else {
			l.text = secrets.LoggedValue(c.args.Tree.Value())
		}
	}
	return l.text
}

// logged holds the log's version of the arguments.
type logged struct {
	text    strictjson.Compact
	of      *checked        // nil: made from the call's own arguments
	secrets *redact.Secrets // the secrets that were left out
}

// decode decodes the arguments of a base tool into v; see
// [callargs.Arguments.Decode].
func (c *call) decode(v any) error {
	problem := c.args.Decode(v)
	if problem == "" {
		return nil
	}
	e := toolerr.New(toolerr.CodeInvalidArguments, "Correct the arguments and call again.", "%s", problem)
	e.Schema = json.RawMessage(c.tool.input)
	return e
}

// requireText returns an error that names the empty values among name/value pairs.
func (c *call) requireText(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			e := toolerr.New(toolerr.CodeInvalidArguments, "Give it and call again.", "%q is required", pairs[i])
			e.Schema = json.RawMessage(c.tool.input)
			return e
		}
	}
	return nil
}
