package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// ErrDenied is the decision that a call does not happen. Errors that are
// denials match it and are a *[DeniedError].
var ErrDenied = errors.New("denied")

// A DeniedError says why a call does not happen, in words for a model and a
// person.
type DeniedError struct {
	Reason string // what happened
	Hint   string // what to do now
}

func (e *DeniedError) Error() string { return "denied: " + e.Reason }

func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// A WeakSandboxError is the denial of a run because programs cannot be confined
// as strongly as the configuration requires.
type WeakSandboxError struct {
	Have, Require sandbox.Level
}

func (e *WeakSandboxError) Error() string {
	return fmt.Sprintf("the sandbox level here is %q, and the configuration requires %q", e.Have, e.Require)
}

func (e *WeakSandboxError) Is(target error) bool { return target == ErrDenied }

// A Runner starts one program under one policy. It is [sandbox.Runner].
type Runner interface {
	Level() sandbox.Level
	Run(context.Context, sandbox.Policy, sandbox.Command) (*sandbox.Result, error)
}

// A Recorder is where decisions and runs are written. It is [audit.Log].
type Recorder interface {
	// Append returns when the entry is on disk.
	Append(audit.Entry) error
	// AppendLazy returns when the entry is written; it is on disk within a second.
	AppendLazy(audit.Entry) error
}

// Options are what a gate is made of.
type Options struct {
	Runner Runner
	Log    Recorder
	Logger *slog.Logger // nil discards
	// Server names this process in the audit log.
	Server string
	// Require is the weakest level of confinement under which a program may
	// start.
	Require sandbox.Level
	// Pending is how long a state may travel before its answer is worth
	// nothing; 0 is ten minutes.
	Pending time.Duration
	// FullArguments writes arguments into the audit log as they came; otherwise
	// secret values are taken out.
	FullArguments bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// A Gate decides about calls and owns the runner. It is safe for concurrent
// use. Make one with [New].
type Gate struct {
	runner  Runner
	log     Recorder
	logger  *slog.Logger
	server  string
	require sandbox.Level
	pending time.Duration
	full    bool
	now     func() time.Time
	states  *states

	mu     sync.Mutex
	grants map[string]map[string]time.Time // chat → grant digest → when it was given
}

// New returns a gate with no grants. Everything in o that is an interface is
// required.
func New(o Options) (*Gate, error) {
	if o.Runner == nil || o.Log == nil {
		return nil, errors.New("gate: a runner and an audit log are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Pending <= 0 {
		o.Pending = 10 * time.Minute
	}
	st, err := newStates(o.Now)
	if err != nil {
		return nil, err
	}
	return &Gate{
		runner: o.Runner, log: o.Log, logger: o.Logger, server: o.Server,
		require: o.Require, pending: o.Pending, full: o.FullArguments, now: o.Now, states: st,
		grants: make(map[string]map[string]time.Time),
	}, nil
}

// Level is how strongly the gate's runner confines programs.
func (g *Gate) Level() sandbox.Level { return g.runner.Level() }

// EndChat forgets the grants of a chat that has ended.
func (g *Gate) EndChat(chat string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.grants, chat)
}

// Check decides about one request. Exactly one of its results is not nil: a
// permit, a question to ask, or an error. An error is a denial, or the audit
// log could not be written, which is a denial too; all match [ErrDenied].
//
// answer is nil on the first call, and what came back for the question on the
// second. A client that sends an answer or a state with a first call must be
// passed on here as an Answer: it is refused and recorded.
func (g *Gate) Check(ctx context.Context, req Request, answer *Answer) (*Permit, *Question, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, g.deny(req, answer, "the call was cancelled", "")
	}
	if reason := req.invalid(); reason != "" {
		return nil, nil, g.deny(req, answer, reason, "")
	}
	if req.Kind == KindRun && g.runner.Level() < g.require {
		weak := &WeakSandboxError{Have: g.runner.Level(), Require: g.require}
		if err := g.record(req, answer, Deny, weak.Error()); err != nil {
			return nil, nil, err
		}
		return nil, nil, weak
	}
	if answer != nil {
		return g.answered(req, answer)
	}
	if req.Kind == KindList {
		return g.permit(req, nil, Once, "metadata never asks")
	}
	if !req.onceOnly() && g.granted(req) {
		return g.permit(req, nil, Chat, "allowed for this chat before")
	}
	if !req.Caller.CanAsk {
		return nil, nil, g.deny(req, nil, "this client cannot show questions, so nobody could be asked",
			"Tell the user: every call needs a person's approval, and this client does not support MCP elicitation. "+
				"They can use a client that does, or try the pack in a terminal with: packs-mcp try PACK_DIR")
	}
	q, err := g.ask(req)
	if err != nil {
		return nil, nil, g.deny(req, nil, err.Error(), "")
	}
	return nil, q, nil
}

// answered applies the answer to a question about this very request.
func (g *Gate) answered(req Request, answer *Answer) (*Permit, *Question, error) {
	if err := g.states.redeem(answer.State, req.callDigest(g.runner.Level())); err != nil {
		hint := "Make the call again, without an answer or a state; the user will then be asked."
		return nil, nil, g.deny(req, answer, err.Error(), hint)
	}
	decision, reason := answer.decision(req.choices())
	if decision == Deny {
		return nil, nil, g.deny(req, answer, reason,
			"Do not call again unless the user asks for it; say what you wanted to do and why, or go on without it.")
	}
	permit, q, err := g.permit(req, answer, decision, "")
	if err == nil && decision == Chat {
		g.grant(req)
	}
	return permit, q, err
}

// ask makes the question for a request.
func (g *Gate) ask(req Request) (*Question, error) {
	text, err := g.render(&req)
	if err != nil {
		return nil, err
	}
	expires := g.now().Add(g.pending)
	state, err := g.states.mint(req.callDigest(g.runner.Level()), expires)
	if err != nil {
		return nil, err
	}
	return &Question{Title: req.title(), Text: text, Choices: req.choices(), State: state, Expires: expires}, nil
}

// permit records the decision and then, only if that worked, allows the call.
func (g *Gate) permit(req Request, answer *Answer, d Decision, reason string) (*Permit, *Question, error) {
	p := &Permit{gate: g, req: req}
	if req.Kind == KindRun {
		p.run = newRunID()
	}
	if err := g.record(req, answer, d, reason, p.run); err != nil {
		return nil, nil, err
	}
	return p, nil, nil
}

// deny records a denial and returns it.
func (g *Gate) deny(req Request, answer *Answer, reason, hint string) error {
	if err := g.record(req, answer, Deny, reason); err != nil {
		return err
	}
	return &DeniedError{Reason: reason, Hint: hint}
}

// granted reports whether a person allowed the like of req for the chat.
func (g *Gate) granted(req Request) bool {
	key := req.grantDigest(g.runner.Level())
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.grants[req.Caller.Chat][key]
	return ok
}

func (g *Gate) grant(req Request) {
	key := req.grantDigest(g.runner.Level())
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.grants[req.Caller.Chat] == nil {
		g.grants[req.Caller.Chat] = make(map[string]time.Time)
	}
	g.grants[req.Caller.Chat][key] = g.now()
}

// onceOnly reports whether only this exact call can be approved, never the
// like of it.
func (r *Request) onceOnly() bool {
	return r.AlwaysAsk || r.Pack.Trust == TrustUntrusted || r.Pack.Trust == ""
}

// choices are the answers offered for r, the safest last so that nothing is
// allowed by pressing the first key twice.
func (r *Request) choices() []Choice {
	once := Choice{Value: string(Once), Title: "Run once: this exact call"}
	if r.Kind != KindRun {
		once.Title = "Allow once: this exact call"
	}
	deny := Choice{Value: denyWord, Title: "Deny"}
	if r.onceOnly() {
		return []Choice{once, deny}
	}
	until := r.Caller.ChatEnd
	if until == "" {
		until = "until this chat ends"
	}
	return []Choice{once, {Value: string(Chat), Title: fmt.Sprintf("Allow %s, %s", r.scope(), until)}, deny}
}

// invalid says why r cannot be asked about at all.
func (r *Request) invalid() string {
	switch {
	case r.Caller.Chat == "":
		return "the call belongs to no chat"
	case (r.Kind == KindRun) != (r.Run != nil):
		return "the request is incomplete"
	}
	switch r.Kind {
	case KindList, KindOpen, KindRead, KindEnable, KindRun:
	default:
		return fmt.Sprintf("the kind %q is unknown", r.Kind)
	}
	if len(r.Arguments) > 0 {
		if _, err := decode(r.Arguments); err != nil {
			return "the arguments are not JSON"
		}
	}
	return ""
}

func newRunID() string { return "run-" + rand.Text()[:16] }
