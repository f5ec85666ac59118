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
// here as strongly as it takes.
type WeakSandboxError struct {
	Have, Require sandbox.Level
	// Network is the one that cannot be had at level Have; none when it is the
	// configuration that requires more.
	Network sandbox.Network
	Hint    string // what would give this machine a better level, or empty
}

func (e *WeakSandboxError) Error() string {
	if e.Network != sandbox.NetworkNone {
		return fmt.Sprintf("it needs the network %q, which the sandbox here, of level %q, cannot give it", e.Network, e.Have)
	}
	return fmt.Sprintf("the sandbox level here is %q, and the configuration requires %q", e.Have, e.Require)
}

func (e *WeakSandboxError) Is(target error) bool { return target == ErrDenied }

// A Runner starts one program under one policy. It is [sandbox.Runner].
type Runner interface {
	// Probe says how programs are confined here; the first call finds out.
	Probe(context.Context) sandbox.Report
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

// Sandbox says how the gate's runner confines programs. The first call takes
// the time of running some, whoever makes it; the first run makes it otherwise.
func (g *Gate) Sandbox(ctx context.Context) sandbox.Report {
	// What is found out holds for everybody, so nobody's patience cuts it short.
	return g.runner.Probe(context.WithoutCancel(ctx))
}

// EndChat forgets the grants and the open questions of a chat that has ended.
func (g *Gate) EndChat(chat string) {
	g.states.forget(chat)
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
	c := &check{Gate: g, req: req, answer: answer}
	if req.Run != nil {
		c.box = g.Sandbox(ctx)
	}
	var stale error
	if answer != nil {
		// First of all: whatever is decided, the state is spent.
		stale = g.states.redeem(answer.State, req.callDigest(c.box.Level))
	}
	if ctx.Err() != nil {
		return nil, nil, c.deny("the call was cancelled", "")
	}
	if reason := req.invalid(); reason != "" {
		return nil, nil, c.deny(reason, "")
	}
	if weak := c.tooWeak(); weak != nil {
		if err := c.record(Deny, weak.Error(), ""); err != nil {
			return nil, nil, err
		}
		return nil, nil, weak
	}
	if answer != nil {
		permit, err := c.answered(stale)
		return permit, nil, err
	}
	return c.first()
}

// tooWeak says why the request cannot be confined as it has to be; nil when it
// can.
func (c *check) tooWeak() *WeakSandboxError {
	if c.req.Kind != KindRun {
		return nil
	}
	have := c.box.Level
	switch {
	case have < c.require:
		return &WeakSandboxError{Have: have, Require: c.require, Hint: c.box.Hint}
	case have > sandbox.LevelNone && !c.box.Loopback && c.req.Run.Policy.Network == sandbox.NetworkLoopback:
		// Only a network of its own tells the run's processes from all others.
		return &WeakSandboxError{Have: have, Require: c.require, Network: sandbox.NetworkLoopback, Hint: c.box.Hint}
	}
	return nil
}

// Refuse records that an answer came for a call that cannot be made, and spends
// the answer's state, so that it allows nothing later. Of req only the caller,
// the method and the arguments need be known.
func (g *Gate) Refuse(req Request, answer *Answer, reason string) error {
	c := &check{Gate: g, req: req, answer: answer}
	if req.Run != nil {
		c.box = g.Sandbox(context.Background())
	}
	if err := g.states.redeem(answer.State, req.callDigest(c.box.Level)); err != nil {
		reason += "; " + err.Error()
	}
	return c.deny(reason, "Make the call again, without an answer or a state; the user will then be asked.")
}

// A check is one call of [Gate.Check].
type check struct {
	*Gate
	box    sandbox.Report // how the runner confines, asked once, when the request is a run
	req    Request
	answer *Answer
}

// first decides about a request that comes without an answer.
func (c *check) first() (*Permit, *Question, error) {
	if c.req.Kind == KindList {
		permit, err := c.permit(Once, "metadata never asks")
		return permit, nil, err
	}
	if !c.req.onceOnly() && c.granted() {
		permit, err := c.permit(Chat, "allowed for this chat before")
		return permit, nil, err
	}
	if !c.req.Caller.CanAsk {
		return nil, nil, c.deny("this client cannot show questions, so nobody could be asked",
			"Tell the user: every call needs a person's approval, and this client does not support MCP elicitation. "+
				"They can use a client that does, or try the pack in a terminal with: packs-mcp try PACK_DIR")
	}
	text, err := render(&c.req, c.box)
	if err != nil {
		return nil, nil, c.deny(err.Error(), "Make a smaller call: split it, or put long text in a file that the call names.")
	}
	expires := c.now().Add(c.pending)
	state, err := c.states.mint(c.req.Caller.Chat, c.req.callDigest(c.box.Level), expires)
	if err != nil {
		return nil, nil, c.deny("the question could not be made: "+err.Error(), "")
	}
	return nil, &Question{Title: c.req.title(), Text: text, Choices: c.req.choices(), State: state, Expires: expires}, nil
}

// answered applies the answer to a question. stale says why the answer's state
// is not that of a question about this very request; nil when it is.
func (c *check) answered(stale error) (*Permit, error) {
	if stale != nil {
		return nil, c.deny(stale.Error(), "Make the call again, without an answer or a state; the user will then be asked.")
	}
	decision, reason := c.answer.decision(c.req.choices())
	if decision == Deny {
		return nil, c.deny(reason,
			"Do not call again unless the user asks for it; say what you wanted to do and why, or go on without it.")
	}
	permit, err := c.permit(decision, "")
	if err == nil && decision == Chat {
		c.grant()
	}
	return permit, err
}

// permit records the decision and then, only if that worked, allows the call.
func (c *check) permit(d Decision, reason string) (*Permit, error) {
	// A copy: what is done with the request from here on changes nothing.
	p := &Permit{gate: c.Gate, box: c.box, req: c.req.clone()}
	if p.req.Kind == KindRun {
		p.run = newRunID()
	}
	if err := c.record(d, reason, p.run); err != nil {
		return nil, err
	}
	return p, nil
}

// deny records a denial and returns it.
func (c *check) deny(reason, hint string) error {
	if err := c.record(Deny, reason, ""); err != nil {
		return err
	}
	return &DeniedError{Reason: reason, Hint: hint}
}

// granted reports whether a person allowed the like of the request for the
// chat.
func (c *check) granted() bool {
	key := c.req.grantDigest(c.box.Level)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.grants[c.req.Caller.Chat][key]
	return ok
}

func (c *check) grant() {
	key := c.req.grantDigest(c.box.Level)
	c.mu.Lock()
	defer c.mu.Unlock()
	chat := c.req.Caller.Chat
	if c.grants[chat] == nil {
		c.grants[chat] = make(map[string]time.Time)
	}
	c.grants[chat][key] = c.now()
}

func newRunID() string { return "run-" + rand.Text()[:16] }
