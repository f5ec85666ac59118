package calls

import (
	"context"
	"errors"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// refused records a call that was refused before anybody was asked: who made it, and
// why it was refused. Of the arguments, it records only the pack that they name: a
// call that was not understood can have a secret anywhere.
func (r *Road) refused(by gate.Caller, method string, args *callargs.Arguments, err error) {
	code, reason := whyRefused(err)
	if code == "" {
		return
	}
	refusal := lines.Refusal{Caller: by, Method: method, Pack: args.Tree.StringAt("pack_id"), Arguments: args.Whole(), Code: code, Reason: reason}
	refusal.Pack, refusal.Reason = r.opts.Secrets.Logged(refusal.Pack), r.opts.Secrets.Logged(refusal.Reason)
	r.opts.Gate.Refused(refusal)
}

// RefusedEarly is refused for a request that has not become a call.
func (r *Road) RefusedEarly(ctx context.Context, method string, args *callargs.Arguments, err error) {
	if ch, sess, ok := chats.Of(ctx); ok {
		r.refused(r.Caller(ctx, wire.NewReference(), ch, sess), method, args, err)
	}
}

// whyRefused returns the code and the words of a refusal; both are empty for a call
// that was cancelled. It leaves out what only the server's own log may have.
func whyRefused(err error) (code, reason string) {
	e := toolerr.Known(err)
	switch {
	case e != nil && e.Code == toolerr.CodeCancelled:
		return "", ""
	case e != nil:
		return e.Code, e.Message
	case errors.Is(err, address.ErrNoResource) || toolerr.IsMissing(err):
		return toolerr.CodeNotFound, "there is no such resource"
	}
	if e, ok := errors.AsType[*toolerr.RPCError](err); ok {
		return toolerr.CodeInvalidArguments, e.Message
	}
	return toolerr.CodeInternalError, "an internal error; see the server's log"
}

// withoutTokens refuses a call that has a token of this server in its arguments: a
// person would have to be shown all of it, and the log would keep it.
func (r *Road) withoutTokens(c *Call) error {
	if r.opts.Tokens.IsEmpty() {
		return nil
	}
	var said []any
	if c.Args.Tree != nil {
		said = append(said, c.Args.Tree.Value())
	}
	if c.Meta != nil {
		said = append(said, c.Meta.AdditionalFields[ContextKey])
	}
	if r.opts.Tokens.In(said) {
		return toolerr.New(toolerr.CodeInvalidArguments, "Leave it out, and tell the user where it came from.", "the arguments have a token in them that lets people use this server")
	}
	return nil
}

// clientName returns what a client calls itself, without tokens, since people see it.
func (r *Road) clientName(name, version string) string {
	return r.opts.Tokens.Hide(strings.TrimSpace(name + " " + version))
}
