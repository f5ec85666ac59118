package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/caches"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/deciders"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A Gate decides about calls and owns the runner. It is safe for concurrent
// use. Make one with [New].
type Gate struct {
	runner  Runner
	other   func(sandbox.Place) Runner // nil: none
	require sandbox.Level
	copies  Copier // nil: packs are not copied
	caches  *caches.Store
	runs    Claims // nil: this server is alone

	log      Recorder
	logger   *slog.Logger
	author   lines.Author
	refusals *lines.Refusals // bounds the lines about them

	policy  string
	prompts string
	rules   []rules.Rule
	users   []approvers.Who
	who     deciders.Deciders
	book    grants.Book
	ended   func(g grants.Grant, rev uint64) bool // see Options.Ended

	queue   *queue.Queue
	ask     queue.Channels
	remote  bool
	scan    func(*call.Pack) prompt.Scan // nil: there is no scan
	wait    time.Duration                // 0: as long as the client of a call is known to wait
	pending time.Duration

	now func() time.Time

	deciding sync.Mutex // held by Decide, and while an answer is applied that may take a decision back

	mu    sync.Mutex
	wrong map[string]int // :: chat → wrong answers on its cards
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
		if refused.Unavailable {
			denied = unavailable(denied)
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
	if reason := c.allowedByPolicy(stored); reason != "" {
		return queue.Once, queue.ChannelPolicy, reason
	}
	return queue.Deny, "", ""
}

func newRunID() string { return "run-" + rand.Text()[:16] }
