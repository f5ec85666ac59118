// Package calls is the road of a call: from a request to a permit, with a person's
// answer if one is needed.
//
// A [Road] takes a [Call] and has its [Method] prepare an [Action], a request made of
// facts. The gate decides. A person is asked in the way that the client's protocol era
// provides. Only with a permit is the action performed. There is no other way.
//
// It does not know which tools and methods there are, and runs nothing itself. It does
// not decide; package gate does.
package calls

import (
	"context"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
)

// A Gate decides about calls, keeps the open questions, refuses answers to calls that
// cannot be made, and records calls that were refused before they reached it.
type Gate interface {
	Check(context.Context, gate.Request, *answers.Answer) (*gate.Permit, *gate.Question, error)
	Refuse(gate.Request, *answers.Answer, string) error
	Refused(lines.Refusal)
	// Answered returns what was decided about a question on another channel than the
	// client, or nil if nothing was yet.
	Answered(*gate.Question) *answers.Answer
	// Postpone leaves the question of a call that has waited long enough open.
	Postpone(*gate.Question) (*answers.Answer, error)
}

// Options are what a [Road] is made of. All are required, but for Asking.
type Options struct {
	Gate   Gate
	Given  *given.Giver
	Logger *slog.Logger
	// Tokens give access to the server: no call may have one in its arguments.
	Tokens *redact.Secrets
	// Secrets are left out of the log.
	Secrets *redact.Secrets
	// Asking is called before a person is asked; shown reports whether the client
	// shows the question. nil does nothing.
	Asking func(shown bool)
	// Elicit asks the user of a client of an older era, and waits for the answer.
	Elicit func(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error)
	// LookAt looks at the packs in some folders again now; none: at all packs.
	LookAt func(ctx context.Context, dirs []string)
	// Draining is closed when the server is to end: no call waits for a person any more.
	Draining <-chan struct{}
	// Ended returns how many runs have ended.
	Ended func() int
	// Progress is how often a client that asked for progress is told what its call
	// waits for.
	Progress time.Duration
}

// A Road takes calls to the gate, and to a person. It is safe for concurrent use.
type Road struct{ opts Options }

// NewRoad returns a Road.
func NewRoad(o Options) *Road { return &Road{o} }
