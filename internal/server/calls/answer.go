package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// UnaskedAnswer returns the answer that a call brought with it, or nil. In both eras
// it goes to the gate unchanged. The gate believes it only if its state is one that
// the gate made.
func UnaskedAnswer(ctx context.Context, p mcp.MultiRoundTripParams) *answers.Answer {
	if len(p.InputResponses) == 0 && p.RequestState == "" {
		return nil
	}
	if r := mcpserver.ElicitationResponse(p.InputResponses, inputID); r != nil {
		return readForm(ctx, p.RequestState, r)
	}
	return &answers.Answer{State: p.RequestState, Channel: formChannel(ctx)}
}

// readForm returns the answer in a client's form, or in our card if the client shows
// that instead.
func readForm(ctx context.Context, state string, result *mcp.ElicitationResult) *answers.Answer {
	return answers.FromForm(state, string(result.Action), result.Content).Over(formChannel(ctx))
}

// Answerable reports whether a request with this method may carry an answer.
func Answerable(method string) bool {
	switch method {
	case string(mcp.MethodToolsCall), string(mcp.MethodPromptsGet), string(mcp.MethodResourcesRead):
		return true
	}
	return false
}

// A CarriedAnswer is the part of a request that says what its client's user answered,
// as it was written. nil: the request says nothing.
type CarriedAnswer struct {
	State     json.RawMessage
	Responses json.RawMessage
}

// Problem says why what a request carries is not an answer. It is empty if the
// request carries an answer or nothing. The gate judges what the answer says.
func (a *CarriedAnswer) Problem() string {
	var state string
	if a.State != nil && (isNull(a.State) || json.Unmarshal(a.State, &state) != nil) {
		return "requestState must be a text"
	}
	if a.Responses == nil {
		return ""
	}
	var all map[string]json.RawMessage
	if isNull(a.Responses) || json.Unmarshal(a.Responses, &all) != nil {
		return "inputResponses must be an object"
	}
	if _, wrong := strictjson.Parse(a.Responses); wrong != nil { // such as a key that occurs twice
		return "inputResponses cannot be read: " + safetext.Shorten(safetext.Line(wrong.Problem), toolerr.MaxQuoted)
	}
	for id, raw := range all {
		var r struct {
			Action  *string
			Content map[string]any
		}
		if isNull(raw) || raw[0] != '{' {
			return fmt.Sprintf("inputResponses has %q, which must be an object", safetext.Shorten(safetext.Line(id), toolerr.MaxQuoted))
		}
		if id != inputID {
			continue // it answers another question than ours: "ignore information they do not recognize"
		}
		if why := wire.Ambiguous(raw); why != "" {
			return fmt.Sprintf("inputResponses has %q, which cannot be read: %s", id, safetext.Shorten(safetext.Line(why), toolerr.MaxQuoted))
		}
		if json.Unmarshal(raw, &r) != nil || r.Action == nil {
			return fmt.Sprintf(`inputResponses has %q, which must be the result of an elicitation: an "action", and "content" when it is accepted`, id)
		}
	}
	return ""
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// RefuseAnswer records that a request carries something that is not an answer, and
// returns that as an error. If the state is one of ours, it allows nothing
// afterwards.
func (r *Road) RefuseAnswer(ctx context.Context, method *Method, args *callargs.Arguments, state, problem string) error {
	c, err := r.New(ctx, wire.NewReference(), method, args, nil)
	if err != nil {
		return err
	}
	err = r.opts.Gate.Refuse(gate.Request{Caller: c.Caller, Method: method.Name, Arguments: c.Args.Whole()},
		&answers.Answer{State: state, Channel: formChannel(ctx)}, problem)
	if denied, ok := errors.AsType[*gate.DeniedError](err); ok {
		denied.Invalid = true
		return wrongAnswer(denied)
	}
	return err
}

// wrongAnswer returns the error for a request whose answer has a state that belongs
// to no open question about it: the request is wrong, and nobody decided. It returns
// nil for any other error.
func wrongAnswer(err error) error {
	denied, ok := errors.AsType[*gate.DeniedError](err)
	if !ok || !denied.Invalid {
		return nil
	}
	e := toolerr.ExplainGate(denied)
	return &toolerr.RPCError{Code: wire.CodeInvalidParams, Message: e.Code + ": " + strings.TrimSpace(e.Message+". "+e.Hint), Data: map[string]any{"error": e}}
}
