package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/resources"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// frontMethod returns the function that answers a method before the library sees it,
// or nil if the library answers it. The result is a pointer to a struct of the mcp
// package, or to one that embeds [mcp.Result].
func (s *Server) frontMethod(method string) func(context.Context, *calls.Request) (mcp.ResultMetadata, error) {
	switch method {
	case string(mcp.MethodPromptsList):
		return s.prompts.List
	case string(mcp.MethodPromptsGet):
		return s.prompts.Get
	case string(mcp.MethodResourcesList):
		return s.resources.List
	case string(mcp.MethodResourcesTemplatesList):
		return s.resources.Templates
	case string(mcp.MethodResourcesRead):
		return s.resources.Read
	case resources.MethodDirectoryRead:
		return s.resources.Directory
	case resources.MethodSkillsList:
		return s.resources.ListSkills
	case resources.MethodSkillsGet:
		return s.resources.GetSkill
	case string(mcp.MethodCompletionComplete):
		return s.resources.Complete
	default:
		return nil
	}
}

// front answers a request before the library sees it, in either era. ok is false if
// the library must handle the message: one of its own methods, a notification, or a
// request of an era that it refuses.
func (s *Server) front(ctx context.Context, m wire.Message) (reply mcp.JSONRPCMessage, ok bool) {
	answer := s.frontMethod(m.Method)
	if answer == nil && !calls.Answerable(m.Method) || m.ID == nil {
		return nil, false
	}
	ch, sess, known := chats.Of(ctx)
	if !known {
		return nil, false
	}
	if calls.Answerable(m.Method) {
		carried := calls.CarriedAnswer{State: m.Params.Get("requestState"), Responses: m.Params.Get("inputResponses")}
		if text := carried.Problem(); text != "" {
			answer = func(ctx context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
				return nil, s.refuseAnswer(ctx, r, text)
			}
		}
	}
	if answer == nil {
		return nil, false
	}
	meta, ok := metaOf(m.Params)
	if !ok {
		return toolerr.Reply(m.ID, toolerr.BadParams(m.Method)), true
	}
	version := meta.ProtocolVersion()
	info := &mcpserver.RequestProtocolInfo{ProtocolVersion: version}
	if mcp.IsModernProtocol(version) {
		info.Modern, info.ClientInfo, info.ClientCapabilities = true, meta.ClientInfo(), meta.ClientCapabilities()
		if !mcp.IsValidProtocolVersion(version) || info.ClientCapabilities == nil {
			return nil, false // the library refuses these in the same words for every method
		}
		if info.ClientInfo != nil {
			sess.SetClientInfo(*info.ClientInfo)
		}
		sess.SetClientCapabilities(*info.ClientCapabilities)
	}
	ctx = mcpserver.WithRequestProtocolInfo(ctx, info)
	r := &calls.Request{Method: m.Method, Params: m.Params.Raw(), Modern: info.Modern, Chat: ch, Catalog: ch.Catalog(ctx)}
	ch.Lists.Saw(r.Catalog)
	result, err := answer(ctx, r)
	if err != nil {
		return toolerr.Reply(m.ID, s.refusal(m.Method, err)), true
	}
	if r.Modern {
		s.decorate(result)
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(m.ID), Result: result}, true
}

// metaOf returns the request's _meta, or nil if there is none. It reports false if
// _meta or the parameters cannot be read.
func metaOf(params wire.Params) (meta *mcp.Meta, ok bool) {
	if raw := params.Raw(); len(raw) > 0 && !params.IsObject() && string(raw) != "null" {
		return nil, false
	}
	raw := params.Get("_meta")
	return meta, raw == nil || json.Unmarshal(raw, &meta) == nil
}

// decorate adds what results of 2026-07-28 have. What a chat sees is its own, and
// changes when a person allows it, when a program runs, or when somebody edits a
// pack, so clients must not cache it.
func (s *Server) decorate(result mcp.ResultMetadata) {
	if result.GetResultType() == "" {
		result.SetResultType(mcp.ResultTypeComplete)
	}
	if meta := result.EnsureResultMeta(); meta.ServerInfo() == nil {
		meta.SetServerInfo(s.info)
	}
	if c, ok := result.(mcp.CacheHintSetter); ok && result.GetResultType() == mcp.ResultTypeComplete {
		c.SetCacheHints(0, mcp.CacheScopePrivate)
	}
}

// refusal returns the error that a client gets for a request answered here. It says
// what a tool would tell a model, as far as a JSON-RPC error can.
func (s *Server) refusal(method string, err error) *toolerr.RPCError {
	if e, ok := errors.AsType[*toolerr.RPCError](err); ok {
		return e
	}
	e := s.road.Explain(err, wire.NewReference())
	if method == string(mcp.MethodResourcesRead) || method == resources.MethodDirectoryRead {
		e.Hint = strings.TrimSpace(e.Hint + s.orReadFile(err))
	}
	message := e.Message
	if e.Hint != "" {
		message += ". " + e.Hint
	}
	data := map[string]any{"error": e}
	switch e.Code {
	case toolerr.CodeInternalError:
		return &toolerr.RPCError{Code: wire.CodeInternal, Message: e.Message, Data: data}
	case toolerr.CodeDenied, toolerr.CodeApprovalPending, toolerr.CodeTooLarge, toolerr.CodeCancelled:
		return &toolerr.RPCError{Code: toolerr.RPCNotGiven, Message: e.Code + ": " + message, Data: data}
	default:
		return &toolerr.RPCError{Code: wire.CodeInvalidParams, Message: e.Code + ": " + message, Data: data}
	}
}

// orReadFile adds a hint to use read_file for a file whose resource is not given
// because the client cannot ask, or does not wait. What a person denied stays denied.
func (s *Server) orReadFile(err error) string {
	if e, ok := errors.AsType[*gate.DeniedError](err); ok && e.Unasked {
		return ". Files are also read by " + s.exposed(toolname.ReadFile) + "(pack_id, path)"
	}
	if _, ok := errors.AsType[*gate.PendingError](err); ok {
		return " If this request cannot be made again, ask for the file with " + s.exposed(toolname.ReadFile) + "(pack_id, path)."
	}
	return ""
}
