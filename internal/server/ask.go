package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate"
)

// inputID names our one question among the input requests of a call.
const inputID = "approval"

// channelElicitation is how the log names an answer that came through the
// client's form, in either era.
const channelElicitation = "elicitation"

// form makes the elicitation that carries a question. The one field is an enum
// with a title for each value, spelled as clients of every version read it.
func form(q *gate.Question) mcp.ElicitationParams {
	values := make([]string, len(q.Choices))
	titles := make([]string, len(q.Choices))
	for i, c := range q.Choices {
		values[i], titles[i] = c.Value, c.Title
	}
	return mcp.ElicitationParams{
		Message: q.Text,
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"decision": map[string]any{
					"type":        "string",
					"title":       "Your decision",
					"description": "Nothing happens unless you allow it.",
					"enum":        values,
					"enumNames":   titles,
				},
			},
			"required": []string{"decision"},
		},
	}
}

// inputRequired asks a client of 2026-07-28 or later: it calls again with the
// answer and our state.
func inputRequired(q *gate.Question) *mcp.CallToolResult {
	return mcpserver.NewInputRequestBuilder(q.State).Elicit(inputID, form(q)).ToolResult()
}

// unaskedAnswer returns what a call brought along as an answer, or nil. In
// either era it goes to the gate as it is, which believes it only with a state
// of its own.
func unaskedAnswer(req mcp.CallToolRequest) *gate.Answer {
	p := req.Params.MultiRoundTripParams
	if len(p.InputResponses) == 0 && p.RequestState == "" {
		return nil
	}
	a := &gate.Answer{State: p.RequestState, Channel: channelElicitation}
	if r := mcpserver.ElicitationResponse(p.InputResponses, inputID); r != nil {
		a.Action, a.Content = string(r.Action), r.Content
	}
	return a
}

// elicit asks the user of an older client and waits for the answer, at most as
// long as is configured. Whatever goes wrong is an answer that allows nothing.
func (s *Server) elicit(ctx context.Context, q *gate.Question) *gate.Answer {
	a := &gate.Answer{State: q.State, Channel: channelElicitation}
	asked, cancel := context.WithTimeoutCause(ctx, s.opts.Wait, errNoAnswer)
	defer cancel()
	var result *mcp.ElicitationResult
	var err error
	aside(ctx, func() {
		result, err = s.mcp.RequestElicitation(asked, mcp.ElicitationRequest{
			Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)},
			Params:  form(q),
		})
	})
	switch {
	case err == nil && result != nil:
		a.Action, a.Content = string(result.Action), result.Content
	case errors.Is(err, errNoAnswer):
		a.Reason = fmt.Sprintf("nobody answered within %s", s.opts.Wait)
	case ctx.Err() != nil:
		a.Reason = "the call was cancelled while the question was open"
	default:
		s.logger.Warn("the client could not ask", "err", err)
		a.Reason = "the client could not show the question"
	}
	return a
}

var errNoAnswer = errors.New("no answer in time")

// aside waits without keeping other requests of the connection from being
// worked on.
func aside(ctx context.Context, wait func()) {
	if _, sess, ok := chatOf(ctx); ok {
		sess.conn.aside(wait)
		return
	}
	wait()
}
