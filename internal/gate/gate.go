package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/caches"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/deciders"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

// ErrDenied is the decision that a call does not happen. Errors that are
// denials match it and are a *[DeniedError].
var ErrDenied = errors.New("denied")

// A DeniedError says why a call does not happen, in words for a model and a
// person.
type DeniedError struct {
	Reason string // what happened
	Hint   string // what to do now
	// Code names the question under which a person can still allow the call for
	// when it is made again; empty if nobody can.
	Code string
	// Unavailable says that the store that replicas share cannot be reached, so nobody
	// decided this, or it could not be recorded.
	Unavailable bool
	// Unasked says that there was nobody to ask: no person decided this.
	Unasked bool
	// OverLimit says that the person, or a group of theirs, has as much as they may:
	// the call may be made again later.
	OverLimit bool
	// Invalid says that the answer came with a state that belongs to no open
	// question about this call, so no person decided this either.
	Invalid bool
}

func (e *DeniedError) Error() string { return "denied: " + e.Reason }

func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// A PendingError says that nobody has answered yet, and that an answer will hold
// when the same call is made again. Nothing happened.
type PendingError struct {
	Code    string
	Expires time.Time
	Hint    string // what to do now
	// InChat says that the client shows the question on a card when the model asks
	// for it. Hint is then what else the user can do; it may be empty.
	InChat bool
}

func (e *PendingError) Error() string {
	return fmt.Sprintf("nobody has answered yet; the question stays open under the code %s until %s", e.Code, queue.Clock(e.Expires))
}

func (e *PendingError) Is(target error) bool { return target == ErrDenied }

// A WeakSandboxError denies a run because programs cannot be confined here as
// strongly as the run or the configuration requires.
type WeakSandboxError struct {
	Place         sandbox.Place // where it would run
	Have, Require sandbox.Level
	// Network is what cannot be confined at level Have. It is none if the
	// configuration requires a stronger level.
	Network sandbox.Network
	Hint    string // how to get a better level on this machine, or empty
}

func (e *WeakSandboxError) Error() string {
	switch {
	case !e.Place.Local() && e.Network == sandbox.NetworkFull:
		return fmt.Sprintf("it needs the network %q, and it is to run in a container, which has no network but its own", e.Network)
	case !e.Place.Local() && e.Network == sandbox.NetworkNone:
		return fmt.Sprintf("it is to run in a container (%s), and none can be had here; it does not run anywhere else", e.Place)
	case e.Network != sandbox.NetworkNone:
		return fmt.Sprintf("it needs the network %q, which the sandbox here, of level %q, cannot give it", e.Network, e.Have)
	}
	return fmt.Sprintf("the sandbox level here is %q, and the configuration requires %q", e.Have, e.Require)
}

func (e *WeakSandboxError) Is(target error) bool { return target == ErrDenied }

// A Runner starts one program under one policy. It is [runner.Runner].
type Runner interface {
	// Probe says how programs are confined here. The first call finds that out by
	// trying.
	Probe(context.Context) sandbox.Report
	// Layers says how runs can change these folders without writing to them.
	Layers(ctx context.Context, folders []string) []sandbox.Layer
	Run(context.Context, sandbox.Policy, sandbox.Command) (*sandbox.Result, error)
}

// A Recorder is where decisions and runs are written. It is an [audit.Writer].
type Recorder interface {
	// Append returns when the entry is on disk.
	Append(audit.Entry) error
	// AppendLazy returns when the entry is written. It reaches the disk within a
	// second.
	AppendLazy(audit.Entry) error
	// Failures returns how many times the log did not reach the disk. Entries
	// appended lazily before such a failure may be lost.
	Failures() int
}

// Claims has each run start once among the replicas of a server. It is [runs.Claims].
type Claims interface {
	// Entry returns the claim of a run, to be written in place of the question whose answer
	// allows it. cut is the line that the log of another replica gets if this one ends
	// before End is called.
	Entry(question string, cut audit.Entry) ([]byte, error)
	// Took says where that was written.
	Took(run, key string, rev uint64)
	// Claim claims a run before it starts, and reports false if that was done before, for
	// the same question or decision, id. After an error nobody knows whether the run is
	// claimed.
	Claim(ctx context.Context, id string, cut audit.Entry) (claimed bool, err error)
	// End ends the claim of a run, if there is one.
	End(run string)
}

// Options configure a gate.
type Options struct {
	Runner Runner // of this machine
	// Elsewhere returns the runner of another place; nil: there is none. If Elsewhere
	// is nil, all programs run here.
	Elsewhere func(sandbox.Place) Runner
	Log       Recorder
	Logger    *slog.Logger // nil discards
	// Server names this process in the audit log.
	Server string
	// Require is the weakest level of confinement at which a program may start.
	Require sandbox.Level
	// Policy is policy.EveryCall, policy.FirstRun or policy.Balanced; empty means
	// policy.EveryCall.
	Policy string
	// Rules are the user's rules.
	Rules []rules.Rule
	// Approvers say who may allow which calls. A call that no rule covers may be
	// allowed by the person who asks, and by the operator of the server.
	Approvers []approvers.Rule
	// Giver returns who a person that gave a kept answer is today, with the groups that
	// they are in now, or false if they are nobody any more. The operator is not looked
	// up. nil: everybody is who they were.
	Giver func(approvers.Person) (approvers.Person, bool)
	// Users are who may make calls; empty: everybody who can reach the server.
	Users []approvers.Who
	// Remote says that people other than the operator can be asked, on the page or in
	// the terminal.
	Remote bool
	// Prompts is PromptsAuto, PromptsAllow or PromptsAsk; empty means PromptsAuto.
	Prompts string
	// Grants keeps the answers that hold in every chat. If nil, no answer does.
	Grants grants.Store
	// Ended reports whether somebody has taken a chat's answer back on another server.
	// It is called after Load of Grants. If nil, nobody can.
	Ended func(grants.Grant) bool
	// SharedChats keeps the answers that hold in one chat, for chats that replicas have in
	// common. It is read after Load of Grants. If nil, there are no such chats.
	SharedChats grants.ChatStore
	// Runs claims runs before they start. If nil, this server is alone.
	Runs Claims
	// Copies makes the private copies of packs that programs start from. If nil,
	// they start from the pack's own folder.
	Copies Copier
	// Questions is the store in which replicas share their questions, sealed, and Keys
	// make and check the states that clients carry. If it is nil, this server is alone.
	Questions *store.Mirror
	Keys      [][]byte
	// Caches keeps what tools store between runs. If nil, a tool that needs a cache
	// does not run.
	Caches *caches.Store
	// Channels are the ways to ask a person: ChannelElicitation, ChannelPage,
	// ChannelTerminal, ChannelApp. Nil means elicitation alone.
	Channels []string
	// Scan returns what a scan of a pack finds, for the question about a call. If
	// nil, questions do not mention a scan. No answer is bound to the result: a
	// change of the pack ends an answer, but a new rule of the scan does not.
	Scan func(*call.Pack) prompt.Scan
	// Wait is how long a call waits for its answer. 0 means as long as its client
	// is known to wait, or 45 seconds if that is unknown.
	Wait time.Duration
	// Pending is how long a question can be answered, and how long an answer holds
	// for a call that has returned. 0 means ten minutes.
	Pending time.Duration
	// People is how many persons have credentials; 0 means one. Each has an equal
	// share of the room for questions.
	People int
	// WaitingOf limits the questions that wait for an answer, of each person and group.
	WaitingOf quota.Limits
	// FullArguments writes arguments into the audit log unchanged. Otherwise secret
	// values are removed.
	FullArguments bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Gate decides about calls and owns the runner. It is safe for concurrent
// use. Make one with [New].
type Gate struct {
	runner  Runner
	other   func(sandbox.Place) Runner // nil: none
	log     Recorder
	logger  *slog.Logger
	server  string
	author  lines.Author
	require sandbox.Level
	policy  string
	prompts string
	rules   []rules.Rule
	who     deciders.Deciders
	users   []approvers.Who
	remote  bool
	ended   func(grants.Grant) bool // see Options.Ended
	runs    Claims                  // nil: this server is alone
	copies  Copier                  // nil: packs are not copied
	caches  *caches.Store
	scan    func(*call.Pack) prompt.Scan // nil: there is no scan
	ask     queue.Channels
	wait    time.Duration // 0: as long as the client of a call is known to wait
	pending time.Duration
	now     func() time.Time
	queue   *queue.Queue
	book    grants.Book

	refusals *lines.Refusals // bounds the lines about them

	deciding sync.Mutex // held by Decide, and while an answer is applied that may take a decision back

	mu    sync.Mutex
	wrong map[string]int // :: chat → wrong answers on its cards
}

// New returns a gate with no grants. o.Runner and o.Log are required.
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
	if o.Channels == nil {
		o.Channels = []string{queue.ChannelElicitation}
	}
	switch o.Policy {
	case "":
		o.Policy = policy.EveryCall
	case policy.EveryCall, policy.FirstRun, policy.Balanced:
	default:
		return nil, fmt.Errorf("gate: the policy %q is unknown", o.Policy)
	}
	switch o.Prompts {
	case "":
		o.Prompts = PromptsAuto
	case PromptsAuto, PromptsAllow, PromptsAsk:
	default:
		return nil, fmt.Errorf("gate: the word %q for prompts is unknown", o.Prompts)
	}
	if o.Ended == nil {
		o.Ended = func(grants.Grant) bool { return false }
	}
	people := max(1, o.People)
	questions, err := queue.New(queue.Options{Now: o.Now, People: people, Limits: o.WaitingOf, Shared: o.Questions, Keys: o.Keys})
	if err != nil {
		return nil, err
	}
	return &Gate{
		runner: o.Runner, other: o.Elsewhere, log: o.Log, logger: o.Logger, server: o.Server, author: lines.Author{Server: o.Server, Full: o.FullArguments},
		require: o.Require, policy: o.Policy, prompts: o.Prompts, rules: slices.Clone(o.Rules), who: deciders.Deciders{Rules: slices.Clone(o.Approvers), Giver: o.Giver}, users: slices.Clone(o.Users), remote: o.Remote, ended: o.Ended, runs: o.Runs, copies: o.Copies, caches: o.Caches, scan: o.Scan,
		ask: slices.Clone(o.Channels), wait: o.Wait, pending: o.Pending, now: o.Now,
		refusals: lines.NewRefusals(time.Minute),
		queue:    questions, book: grants.Book{Store: o.Grants, Chats: grants.NewChats(people), Common: o.SharedChats}, wrong: make(map[string]int),
	}, nil
}

// Sandbox says how the gate's runner confines programs. The first call, or the
// first run if that comes earlier, takes as long as running a few programs.
func (g *Gate) Sandbox(ctx context.Context) sandbox.Report {
	// Every caller uses the result, so one caller's cancellation must not cut the
	// probe short.
	return g.runner.Probe(context.WithoutCancel(ctx))
}

// at returns the runner of a place, or nil if there is none; then nothing runs.
func (g *Gate) at(p sandbox.Place) Runner {
	switch {
	case p.Local():
		return g.runner
	case g.other == nil:
		return nil
	}
	return g.other(p)
}

// sandboxAt says how programs are confined at a place.
func (g *Gate) sandboxAt(ctx context.Context, p sandbox.Place) sandbox.Report {
	r := g.at(p)
	if r == nil {
		return sandbox.Report{}
	}
	return r.Probe(context.WithoutCancel(ctx))
}

// Layers says how the gate's runner would let a run change these folders of the
// user's. It is for the run's policy.
func (g *Gate) Layers(ctx context.Context, folders []string) []sandbox.Layer {
	return g.runner.Layers(context.WithoutCancel(ctx), folders)
}

// Abandon says that a chat's client is gone while calls of the chat go on. An
// answer to an open question of such a call allows nothing unless the person says
// that it should run anyway. The chat's other questions end.
func (g *Gate) Abandon(chat string) { g.queue.Abandon(chat) }

// LeaveChat forgets what this server has of a chat that other replicas may go on with.
// Its questions stay open, and what was allowed in it holds on.
func (g *Gate) LeaveChat(chat string) {
	g.queue.Part(chat)
	g.forgetChat(chat)
}

// EndChat forgets the grants and the open questions of a chat that has ended.
func (g *Gate) EndChat(chat string) {
	g.queue.Forget(chat)
	g.forgetChat(chat)
}

func (g *Gate) forgetChat(chat string) {
	g.refusals.Forget(chat)
	g.book.Chats.Forget(chat)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.wrong, chat)
}

// Check decides about one request. Exactly one of its results is not nil: a permit,
// a question to ask, or an error. Every error is a denial and matches [ErrDenied],
// including that the audit log could not be written.
//
// answer is nil on the first call, and what came back for the question on the
// second. If the client gave the answer without a person, Check returns another
// question, which is asked elsewhere only. If a client sends an answer or a state
// with a first call, pass it on here as an Answer: it is refused and recorded.
func (g *Gate) Check(ctx context.Context, req call.Request, answer *answers.Answer) (*Permit, *Question, error) {
	c := g.newCheck(ctx, req, answer)
	var stale error
	if answer != nil {
		// Redeem first: the caller's state is spent whatever is decided.
		c.nonce, stale = c.queue.Redeem(answer.State, c.Call)
	}
	if ctx.Err() != nil {
		c.cancelled()
		return nil, nil, c.deny("the call was cancelled", "")
	}
	if reason := c.Call.Problem(); reason != "" {
		c.withdraw(reason)
		return nil, nil, c.deny(reason, "")
	}
	if weak := c.tooWeak(); weak != nil {
		c.withdraw(weak.Error())
		if err := c.record(queue.Deny, queue.ChannelPolicy, weak.Error(), ""); err != nil {
			return nil, nil, err
		}
		return nil, nil, weak
	}
	decide := c.first
	if answer != nil {
		decide = func() (*Permit, *Question, error) { return c.answered(stale) }
	}
	permit, question, err := decide()
	if permit == nil && c.run != "" {
		c.runs.End(c.run)
	}
	return permit, question, err
}

// tooWeak returns why the request cannot be confined as required, or nil if it can.
func (c *check) tooWeak() *WeakSandboxError {
	if !c.Call.Kind.Starts() {
		return nil
	}
	have, place, network := c.box.Level, c.Call.Run.Place, c.Call.Run.Policy.Network
	switch {
	case !place.Local() && have == sandbox.LevelNone:
		return &WeakSandboxError{Place: place, Have: have, Require: c.require, Hint: c.box.Hint}
	case !place.Local() && network == sandbox.NetworkFull:
		return &WeakSandboxError{Place: place, Have: have, Require: c.require, Network: network}
	case have < c.require:
		return &WeakSandboxError{Have: have, Require: c.require, Hint: c.box.Hint}
	case have > sandbox.LevelNone && !c.box.Loopback && network == sandbox.NetworkLoopback:
		// Only a network namespace separates the run's processes from all others.
		return &WeakSandboxError{Place: place, Have: have, Require: c.require, Network: sandbox.NetworkLoopback, Hint: c.box.Hint}
	case !c.box.Loopback && network == sandbox.NetworkHosts:
		// If a program has the machine's network, no list of hosts can be enforced,
		// so there is no weaker run to ask for.
		return &WeakSandboxError{Place: place, Have: have, Require: c.require, Network: sandbox.NetworkHosts, Hint: c.box.Hint}
	}
	return nil
}

// cancelled ends the question of a call that was cancelled. If that was since this server
// ends, and others go on, it stays open for the call, made again there.
func (c *check) cancelled() {
	if c.answer == nil || !c.answer.Ended || !c.queue.Shared() {
		c.withdraw("the client cancelled the call")
		return
	}
	_, _, _, err := c.queue.Leave(c.nonce, "The server of the call ended. Your answer holds once, when the client makes the call again.")
	if err != nil {
		c.logger.Warn("a question could not be left to other servers", "err", err)
	}
}

// Refuse records that an answer came for a call that cannot be made, or for
// something that is not a call. It spends the answer's state, so that the state
// allows nothing later. Of req, only the caller, the method and the arguments are
// needed.
func (g *Gate) Refuse(req call.Request, answer *answers.Answer, reason string) error {
	c := g.newCheck(context.Background(), req, answer)
	nonce, err := c.queue.Redeem(answer.State, c.Call)
	if err != nil {
		reason += "; " + err.Error()
	}
	c.nonce = nonce
	c.withdraw("the call cannot be made any more")
	denied := c.deny(reason, "Make the call again, without an answer or a state; the user will then be asked.")
	if errors.Is(err, queue.ErrForged) || errors.Is(err, queue.ErrSpent) || errors.Is(err, queue.ErrTheirs) {
		return invalid(denied)
	}
	return denied
}

// A check is one call of [Gate.Check].
type check struct {
	*Gate
	box sandbox.Report // how the runner confines; asked once, and only if the request is a run
	policy.Case
	answer *answers.Answer
	nonce  string // of the answer's state, if that is authentic
	asked  string // the id of the question that was answered; empty: there was none
	run    string // the id that the run will have, if taking its answer may have claimed it
	// repeatable says that no person has decided anything about the call, so a
	// client can cause such a denial as often as it likes. The lines about these
	// are bounded.
	repeatable bool
	// atOnce says that the call returns without waiting, so a client can make as many
	// as it likes.
	atOnce  bool
	grant   string // id of the grant that the decision rests on or makes
	ruled   string // where the rule is written that decided
	short   string // which rule nearly allows it, and what is missing; see falls
	unshown bool   // the client does not show the question, although it says that it can
	// changed says what differs from what was allowed before.
	changed []string
}

// newCheck freezes a request for a decision.
func (g *Gate) newCheck(ctx context.Context, req call.Request, answer *answers.Answer) *check {
	c := &check{Gate: g, answer: answer, repeatable: true}
	if req.Run != nil {
		c.box = g.sandboxAt(ctx, req.Run.Place)
	}
	c.Case = g.caseOf(call.Freeze(g.reviewed(req), c.box.Level))
	return c
}

// caseOf returns how a call stands under the gate's policy.
func (g *Gate) caseOf(c *call.Call) policy.Case {
	return policy.Case{Call: c, Policy: g.policy, Keeps: g.book.Store != nil, Copies: g.copies != nil}
}

// first decides about a request that came without an answer.
func (c *check) first() (*Permit, *Question, error) {
	if len(c.users) > 0 && !approvers.Names(c.users, c.asker()) {
		return nil, nil, c.denyBy(queue.ChannelRule, "this person may answer questions and make no calls: roles.use does not name them",
			"Do not try it in another way. Tell the user to ask who runs the server.", "")
	}
	if c.Call.Kind == call.KindList {
		permit, err := c.permit(queue.Once, queue.ChannelPolicy, "metadata never asks")
		return permit, nil, err
	}
	if c.Call.Kind == call.KindDetach {
		// No rule keeps a person from taking a pack out of a chat.
		permit, err := c.permit(queue.Once, queue.ChannelPrompt, prompt.Chosen)
		return permit, nil, err
	}
	verdict := c.rule()
	if verdict.Effect == rules.Deny {
		c.ruled = verdict.Rule.Where
		return nil, nil, c.denyBy(queue.ChannelRule, fmt.Sprintf("a rule of the user's forbids it: %s, %s", verdict.Rule.Where, verdict.Rule),
			"Do not try it in another way. Tell the user what you wanted to do and why.", "")
	}
	c.Always, c.short = verdict.Effect == rules.Ask, c.falls(verdict)
	stored, refused := c.loadGrants()
	if refused != nil {
		denied := c.deny(refused.Reason, refused.Hint)
		if e, ok := errors.AsType[*DeniedError](denied); ok {
			e.Unavailable = refused.Unavailable
		}
		return nil, nil, denied
	}
	if c.takesItsWord() {
		permit, err := c.permit(queue.Once, queue.ChannelPrompt, prompt.Chosen)
		return permit, nil, err
	}
	left, answer, err := c.queue.Again(c.Call, c.holder(), c.waits(), c.claim())
	if err != nil {
		return nil, nil, c.undecided(err)
	}
	if left != nil {
		c.changed = left.Changed
	}
	if answer != nil && c.stillKept(answer) {
		c.took(left)
		permit, err := c.applyLate(answer)
		return permit, nil, err
	}
	if answer != nil {
		left = nil // the answer was taken back, which ended its question
	}
	d, channel, reason := c.already(verdict, stored)
	switch {
	case d != queue.Deny && (left == nil || c.queue.Withdraw(left, "an answer to another call covers it")):
		c.short = ""
		permit, err := c.permit(d, channel, reason)
		return permit, nil, err
	case left != nil:
		q, err := c.renew(left, "")
		return nil, q, err
	default:
		return c.question(stored)
	}
}

// already returns what allows the request without a question, and why: a rule, an
// earlier answer or the policy. It returns [Deny] if nothing does.
func (c *check) already(verdict rules.Verdict, stored []grants.Grant) (d queue.Decision, channel, reason string) {
	if c.Call.OnceOnly() || c.Always {
		return queue.Deny, "", ""
	}
	if verdict.Effect == rules.Allow && c.Allowable(verdict.Rule) {
		c.ruled = verdict.Rule.Where
		return queue.Once, queue.ChannelRule, fmt.Sprintf("allowed by the rule %s, %s", verdict.Rule.Where, verdict.Rule)
	}
	if !c.Call.Lasting() {
		return queue.Deny, "", ""
	}
	if d, grant, ok := c.granted(stored); ok {
		c.grant, c.changed = grant.ID, nil
		return d, queue.ChannelGrant, "allowed before, on " + day(grant.Since)
	}
	if reason := c.unasked(stored); reason != "" {
		return queue.Once, queue.ChannelPolicy, reason
	}
	return queue.Deny, "", ""
}

func newRunID() string { return "run-" + rand.Text()[:16] }
