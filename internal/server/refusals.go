package server

import (
	"context"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// refused records a call that was refused before anybody was asked: who made it, and
// why it was refused. Of the arguments, it records only the pack that they name: a
// call that was not understood can have a secret anywhere.
func (s *Server) refused(by gate.Caller, method string, args *callargs.Arguments, err error) {
	code, reason := whyRefused(err)
	if code == "" {
		return
	}
	r := gate.Refusal{Caller: by, Method: method, Pack: args.Tree.StringAt("pack_id"), Arguments: args.Whole(), Code: code, Reason: reason}
	r.Pack, r.Reason = s.secrets.Logged(r.Pack), s.secrets.Logged(r.Reason)
	s.opts.Gate.Refused(r)
}

// refusedEarly is refused for a request that has not become a call.
func (s *Server) refusedEarly(ctx context.Context, method string, args *callargs.Arguments, err error) {
	if ch, sess, ok := chats.Of(ctx); ok {
		s.refused(s.caller(ctx, wire.NewReference(), ch, sess), method, args, err)
	}
}

// refusedRequest records that a request answered before the library was refused, with
// one of the tools' error codes, and returns its error.
func (s *Server) refusedRequest(ctx context.Context, r *frontRequest, code, what string, err *toolerr.RPCError) error {
	s.refusedEarly(ctx, r.method, callargs.Read(r.params), toolerr.New(code, "", "%s: %s", err.Message, safetext.Quote(safetext.Shorten(what, toolerr.MaxQuoted))))
	return err
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
