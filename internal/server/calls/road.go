package calls

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// New returns a call of a request whose session is in ctx.
func (r *Road) New(ctx context.Context, id string, method *Method, args *callargs.Arguments, meta *mcp.Meta) (*Call, error) {
	ch, sess, ok := chats.Of(ctx)
	if !ok {
		return nil, errors.New("a call came without a session of ours")
	}
	catalog := ch.Lists.CatchUp(ctx)
	caller := r.Caller(ctx, id, ch, sess)
	caller.Wait = patience(sess.GetClientInfo().Name, meta != nil && meta.ProgressToken != nil)
	ch.SetClient(caller.Client)
	spans.From(ctx).Call(id)
	c := &Call{
		ID: id, Method: method, Chat: ch, Args: args, Meta: meta, Catalog: catalog, Caller: caller,
	}
	if err := r.withoutTokens(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Caller returns who makes a call of a chat.
func (r *Road) Caller(ctx context.Context, id string, ch *chats.Chat, sess *wire.Session) gate.Caller {
	info := sess.GetClientInfo()
	modern := mcpserver.IsModernRequest(ctx)
	return gate.Caller{
		Chat: ch.ID(), Shared: ch.Shared(), ChatEnd: ch.Ends, Call: id,
		Client: r.clientName(info.Name, info.Version), Person: ch.Person, Groups: wire.Groups(ctx), Origin: ch.Origin,
		CanAsk: sess.CanAsk() && (modern || sess.TakesQuestions()), Cards: sess.ShowsCards(), Carries: modern,
	}
}

// Explain decides what a model may know about an error. An error that is not known
// here becomes an internal error with a reference, and its cause goes to the log,
// once, with the whole chain.
func (r *Road) Explain(err error, callID string) *toolerr.Error {
	if e := toolerr.Known(err); e != nil {
		return e
	}
	r.opts.Logger.Error("a call failed", "call", callID, "err", err)
	return &toolerr.Error{Code: toolerr.CodeInternalError, Message: wire.InternalMessage(callID), Reference: callID}
}

// Decide takes one call through the gate, and if needed to a person, and does its
// work. If it returns a question, there is no result yet: the client calls again with
// the answer.
func (r *Road) Decide(ctx context.Context, c *Call, answer *answers.Answer) (out any, _ *gate.Question, err error) {
	act, err := r.prepare(ctx, c)
	if err == nil && answer == nil && act.Fits != nil {
		err = act.Fits() // nobody is asked about what could not start
	}
	if err != nil {
		if answer != nil {
			if invalid := wrongAnswer(r.refuse(c, answer)); invalid != nil {
				return nil, nil, invalid
			}
		}
		if answer == nil {
			r.refused(c.Caller, c.Method.Name, c.Args, err)
		}
		if errors.Is(err, packfs.ErrReplaced) {
			r.opts.LookAt(ctx, nil) // a pack that was replaced, as git does, is found again
		}
		return nil, nil, err
	}
	inform(ctx, act.Request)
	act, permit, question, err := r.permit(ctx, c, act, answer)
	if question != nil || err != nil {
		return nil, question, err
	}
	defer permit.Close()
	if out, err = act.Perform(ctx, permit); err == nil {
		c.Note = c.Chat.SinceOpened(act.Request.Pack, c.Opens)
	}
	return out, nil, err
}

// prepare finds out what a call would do with the packs as they are. It refreshes the
// Catalog once if that may be out of date: if a pack changed, or is not valid, since
// its file may have been half written when it was last read.
func (r *Road) prepare(ctx context.Context, c *Call) (*Action, error) {
	act, err := r.PrepareNow(ctx, c)
	folder := ""
	var replaced error
	if e, ok := errors.AsType[*toolerr.OutdatedError](err); ok {
		folder, replaced = e.Pack.Folder(), e.Err
	} else if e, ok := errors.AsType[*toolerr.Error](err); ok {
		folder = e.Folder
	}
	if folder != "" {
		r.opts.LookAt(ctx, []string{folder})
		c.Catalog = c.Chat.Catalog(ctx)
		act, err = r.PrepareNow(ctx, c)
		if replaced != nil && errors.Is(err, packs.ErrNotFound) {
			return act, replaced // what took its place is not a pack
		}
	}
	return act, err
}

// PrepareNow prepares a call from what is there now. A call is prepared once, and
// again only if a person filled something in, or if the call waited for a person or
// for another run.
func (r *Road) PrepareNow(ctx context.Context, c *Call) (*Action, error) {
	c.Ended = r.opts.Ended()
	return c.Method.Prepare(ctx, c)
}

// permit takes one call through the gate, and if needed to a person. It returns what
// was allowed, or the question that the client carries to its user.
func (r *Road) permit(ctx context.Context, c *Call, act *Action, answer *answers.Answer) (_ *Action, _ *gate.Permit, _ *gate.Question, err error) {
	deciding := spans.From(ctx).Gate()
	defer func() { deciding.End(err != nil && !errors.Is(err, gate.ErrDenied)) }()
	permit, question, err := r.opts.Gate.Check(ctx, act.Request, answer)
	if denied, ok := errors.AsType[*gate.DeniedError](err); ok && denied.Unasked && c.Missing != nil {
		return nil, nil, nil, c.Missing // the caller can give it without a person
	}
	if invalid := wrongAnswer(err); invalid != nil {
		return nil, nil, nil, invalid
	}
	if question != nil {
		if question.Elicit && c.Caller.Carries {
			r.asking(question)
			deciding.Asked()
			return nil, nil, question, nil
		}
		act, permit, err = r.askAndCheck(ctx, c, question)
	}
	if err == nil && len(act.Request.Fields) > 0 {
		act, permit, err = r.fillIn(ctx, c, permit)
	}
	return act, permit, nil, err
}

// askAndCheck waits for a person and decides again. It finds out anew what the call
// would do: the answer counts only if that is still the same. If the client turns out
// not to show the question, the person is asked elsewhere.
func (r *Road) askAndCheck(ctx context.Context, c *Call, q *gate.Question) (*Action, *gate.Permit, error) {
	for {
		act, permit, again, err := r.askOnce(ctx, c, q)
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
func (r *Road) askOnce(ctx context.Context, c *Call, q *gate.Question) (*Action, *gate.Permit, *gate.Question, error) {
	r.asking(q)
	answered := spans.From(ctx).Waiting()
	answer, err := r.ask(ctx, c, q)
	answered()
	if err != nil {
		return nil, nil, nil, err
	}
	c.Chat.CatchUp(ctx)
	c.Catalog = c.Chat.Catalog(ctx)
	// Pass a call that was cancelled meanwhile to the gate too, which denies and
	// records it.
	act, err := r.prepare(context.WithoutCancel(ctx), c)
	if err != nil {
		_ = r.refuse(c, answer) // the call cannot be made, whatever the answer
		return nil, nil, nil, err
	}
	permit, again, err := r.opts.Gate.Check(ctx, act.Request, answer)
	return act, permit, again, err
}

// asking says that a question is about to be shown, or to wait elsewhere.
func (r *Road) asking(q *gate.Question) {
	if r.opts.Asking != nil {
		r.opts.Asking(q.Elicit || q.InChat)
	}
}

// fillIn makes the call with the values that the person filled in.
func (r *Road) fillIn(ctx context.Context, c *Call, permit *gate.Permit) (*Action, *gate.Permit, error) {
	c.Filled = permit.Values()
	if c.checked != nil {
		c.checked.expanded = nil
	}
	act, err := r.PrepareNow(ctx, c)
	if err != nil {
		permit.Close()
		return nil, nil, errors.Join(err, permit.Withhold("the call cannot be made with the values that were filled in", "Ask the user for other values, and call again."))
	}
	filled, err := permit.Fill(act.Request)
	if err != nil {
		permit.Close()
	}
	return act, filled, err
}

// refuse records an answer to a call that cannot be made, because what was asked
// about is gone or never existed. The answer allows nothing. refuse returns the
// denial.
func (r *Road) refuse(c *Call, answer *answers.Answer) error {
	req := gate.Request{Caller: c.Caller, Method: c.Method.Name, Arguments: c.Args.Whole()}
	err := r.opts.Gate.Refuse(req, answer, "an answer came for a call that cannot be made")
	r.opts.Logger.Debug("an answer was refused", "call", c.ID, "err", err)
	return err
}
