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
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/internal/server/toolresult"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
	"github.com/packs-mcp/packs-mcp/internal/spans"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A baseTool is one of the tools that are always there, or a method beside
// tools/call that takes the same road; of such a one only name, input and
// prepare count.
type baseTool struct {
	name        string // plain name, see [Server.exposed]; or the method's
	title       string
	description func(*Server, *packs.Catalog, *toolfiles.Once) string
	input       string // JSON Schema
	output      string // JSON Schema
	annotations mcp.ToolAnnotation
	meta        map[string]any // what a list says besides; nil: as for the others
	cards       bool           // only for clients that show cards; see [Server.showsCards]
	// prepare decodes the arguments and finds out what the call would do. It
	// changes nothing. See [Server.prepareNow].
	prepare func(*Server, context.Context, *call) (*action, error)
}

// A call is one tools/call, or another request that the gate decides about, on
// its way.
type call struct {
	id      string // for the logs
	tool    *baseTool
	chat    *chat
	caller  gate.Caller
	catalog *packs.Catalog // the one this call keeps
	args    *callargs.Arguments
	checked *checked // see check
	log     logged   // see logged
	meta    *mcp.Meta
	// filled are the values that a person gave for what the tool needs to know of
	// their context, by the names of the question's fields; nil before that.
	filled map[string]string
	// missing is what the tool needs to know of the context, for where nobody can be
	// asked for it; nil: nothing.
	missing   *tools.MissingContextError
	workspace *workspace.Workspace // the workspace that it is about; nil: the chat's first
	ended     int                  // how many runs had ended when it was prepared last; see [run.confirm]

	opens bool   // it gives the document of a pack from its beginning
	note  string // what the model should know besides the result; empty: nothing

	telling sync.Mutex
	told    int // pieces of progress that the client was told; guarded by telling
}

// An action is a call that was understood: what a person is asked about it,
// and the work itself, which needs the permit.
type action struct {
	request gate.Request
	perform func(context.Context, *gate.Permit) (any, error)
}

// contextKey is where a client may say what its user looks at.
const contextKey = "packs-mcp/context"

// call is the one road of every tool call. It recovers panics, whose texts are
// for the log and not for a client.
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

// explain decides what a model may know of an error. What is not known here
// becomes an internal error with a reference, and the cause goes to the log,
// once, with the whole chain.
func (s *Server) explain(err error, callID string) *toolerr.Error {
	if e := toolerr.Known(err); e != nil {
		return e
	}
	s.logger.Error("a call failed", "call", callID, "err", err)
	return &toolerr.Error{Code: toolerr.CodeInternalError, Message: wire.InternalMessage(callID), Reference: callID}
}

// decide takes one call through the gate, and a person, to its work. With a
// question there is no result yet: the client calls again with the answer.
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
			s.lookAt(ctx) // a pack that was put there anew, as git does, is a pack again
		}
		return nil, nil, err
	}
	inform(ctx, act.request)
	act, permit, question, err := s.permit(ctx, c, act, answer)
	if question != nil || err != nil {
		return nil, question, err
	}
	if out, err = act.perform(ctx, permit); err == nil {
		c.note = c.chat.sinceOpened(act.request.Pack, c.opens)
	}
	return out, nil, err
}

// sinceOpened says, once, that a pack is no longer what it was when the model saw its
// document. opens is that it sees it now.
func (c *chat) sinceOpened(pack gate.Pack, opens bool) (note string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.opened[pack.ID]
	if !opens && (!known || was == pack.Digest) {
		return ""
	}
	if c.opened == nil {
		c.opened = make(map[string]string)
	}
	c.opened[pack.ID] = pack.Digest
	if opens {
		return ""
	}
	return fmt.Sprintf("Pack %s changed since you opened it. Open it again before you rely on its documents.", pack.ID)
}

// prepare finds out what a call would do, by the packs as they are. If the Catalog
// may be out of date, it is made anew, once: a pack that changed, or that is not valid,
// since the file may have been half written when it was looked at.
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
		c.catalog = s.catalog(ctx, c.chat)
		act, err = s.prepareNow(ctx, c)
		if replaced != nil && errors.Is(err, packs.ErrNotFound) {
			return act, replaced // what took its place is no pack
		}
	}
	return act, err
}

// prepareNow prepares a call by what is there now. That is done once, and again only
// when a person filled something in or somebody was waited for: a person, or
// another run.
func (s *Server) prepareNow(ctx context.Context, c *call) (*action, error) {
	c.ended = s.claims.Count()
	return c.tool.prepare(s, ctx, c)
}

// lookAt has packs be looked at again at once: those in dirs, or all.
func (s *Server) lookAt(ctx context.Context, dirs ...string) {
	if _, err := s.opts.Library.Refresh(ctx, dirs); err != nil {
		s.logger.Debug("the packs were not scanned again", "err", err)
	}
	s.Refresh(ctx)
}

// permit takes one call through the gate, and a person. What comes out is what
// was allowed, or the question that the client carries to its user.
func (s *Server) permit(ctx context.Context, c *call, act *action, answer *gate.Answer) (_ *action, _ *gate.Permit, _ *gate.Question, err error) {
	deciding := spans.From(ctx).Gate()
	defer func() { deciding.End(err != nil && !errors.Is(err, gate.ErrDenied)) }()
	permit, question, err := s.opts.Gate.Check(ctx, act.request, answer)
	if denied, ok := errors.AsType[*gate.DeniedError](err); ok && denied.Unasked && c.missing != nil {
		return nil, nil, nil, c.missing // the caller can mend this without a person
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

// askAndCheck waits for a person and decides again. What the call
// would do is found out anew: the answer counts only if that is still the same.
// When the client turns out not to show the question, the person is asked elsewhere.
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

// askOnce is askAndCheck for one question. What comes out may be another.
func (s *Server) askOnce(ctx context.Context, c *call, q *gate.Question) (*action, *gate.Permit, *gate.Question, error) {
	s.asking(q)
	answered := spans.From(ctx).Waiting()
	answer, err := s.ask(ctx, c, q)
	answered()
	if err != nil {
		return nil, nil, nil, err
	}
	c.catalog = s.catalog(ctx, c.chat)
	// A call that was cancelled meanwhile gets as far as the gate, which denies
	// and records it.
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

// refuse records an answer to a call that cannot be made: what was asked about
// is no longer there, or never was. Whatever the answer says is worth nothing.
// It returns the denial.
func (s *Server) refuse(c *call, answer *gate.Answer) error {
	req := gate.Request{Caller: c.caller, Method: c.tool.name, Arguments: c.args.Whole()}
	err := s.opts.Gate.Refuse(req, answer, "an answer came for a call that cannot be made")
	s.logger.Debug("an answer was refused", "call", c.id, "err", err)
	return err
}

func (s *Server) newCall(ctx context.Context, id string, tool *baseTool, args *callargs.Arguments, meta *mcp.Meta) (*call, error) {
	ch, sess, ok := chatOf(ctx)
	if !ok {
		return nil, errors.New("a call came without a session of ours")
	}
	catalog := s.catchUp(ctx, ch)
	caller := s.caller(ctx, id, ch, sess)
	caller.Wait = patience(sess.GetClientInfo().Name, meta != nil && meta.ProgressToken != nil)
	s.named(ch, caller.Client)
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

// caller is who makes a call of a chat.
func (s *Server) caller(ctx context.Context, id string, ch *chat, sess *wire.Session) gate.Caller {
	info := sess.GetClientInfo()
	modern := mcpserver.IsModernRequest(ctx)
	return gate.Caller{
		Chat: ch.id, ChatEnd: ch.ends, Call: id,
		Client: s.clientName(info.Name, info.Version), Person: ch.person, Groups: wire.Groups(ctx), Origin: ch.origin,
		CanAsk: sess.CanAsk() && (modern || sess.TakesQuestions()), Cards: sess.ShowsCards(), Carries: modern,
	}
}

// checked are arguments that a tool takes.
type checked struct {
	tool     *tools.Tool
	values   tools.Values
	expanded *plan.Expanded // filled into the tool's command; nil: not yet, see [Server.expand]
}

// check holds the arguments for a pack's tool against its schema. That is done once
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

// expand fills the values that check took last into the tool's command. What the call
// says and what is known of its context is the same each time that it is prepared, until
// a person fills something in, so that is done once for each.
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

// logged returns what the log keeps of the arguments: of a pack's tool those that check
// took last, else all. It is written again only when that, or what has to be left out,
// is something else.
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

// logged is what the log keeps of arguments.
type logged struct {
	text    strictjson.Compact
	of      *checked        // nil: of the call's own
	secrets *redact.Secrets // that text is without
}

// decode puts the arguments of a base tool into v; see [callargs.Arguments.Decode].
func (c *call) decode(v any) error {
	problem := c.args.Decode(v)
	if problem == "" {
		return nil
	}
	e := toolerr.New(toolerr.CodeInvalidArguments, "Correct the arguments and call again.", "%s", problem)
	e.Schema = json.RawMessage(c.tool.input)
	return e
}

// requireText says what is missing of name/value pairs that must not be empty.
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
