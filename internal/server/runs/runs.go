// Package runs prepares calls that run a pack's tool or a command, and runs those that were
// allowed: each waits for its place, checks that it still is what was allowed, and reports
// its outcome.
//
// It starts no program itself: a permit does, and only the gate makes permits. Package plan
// finds out what a call would run.
package runs

import (
	"context"
	"errors"
	"log/slog"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/claims"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/envelope"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// Options are what [Runs] are made of. All are required.
type Options struct {
	Road     *calls.Road
	Claims   *claims.Set
	Offer    *offer.Offer
	Resolver *enabled.Resolver // of names of tools
	Given    *given.Giver
	Planner  *plan.Planner
	Logger   *slog.Logger
	Quota    int64 // bytes that the workspaces of a chat may hold
	// RunsOf and MemoryOf limit the programs that run, and the bytes of memory that these
	// may take, of each person and group.
	RunsOf, MemoryOf quota.Limits
}

// Runs run programs. They are safe for concurrent use.
type Runs struct {
	opts Options
	load *load
}

// New returns Runs.
func New(o Options) *Runs { return &Runs{o, newLoad(o.RunsOf, o.MemoryOf)} }

// A Run is one program of a call, from the permit to the result.
type Run struct {
	Call    *calls.Call
	Pack    *packs.Pack
	Plan    *plan.Plan
	Output  tools.Output
	Allows  func(code int) bool // whether an exit status is a success
	Secrets *redact.Secrets     // that must not be in the result

	runs   *Runs
	waited bool // the run waited for its turn in a folder
}

// Action returns the action of a call that runs r. It changes r.
func (s *Runs) Action(r *Run, req gate.Request) *calls.Action {
	r.runs = s
	fits := func() error {
		if over := s.load.fits(&req); over != nil {
			return over
		}
		return nil
	}
	return &calls.Action{Request: req, Fits: fits, Perform: func(ctx context.Context, permit *gate.Permit) (_ any, err error) {
		step := spans.From(ctx).Run(permit.RunID())
		defer func() { step.End(err != nil) }()
		var release func()
		progress := r.runs.opts.Road.Telling(ctx, r.Call, "waiting for other programs to end")
		wire.Aside(ctx, func() { release, err = r.place(ctx, claims.Of(permit, req.Run)) })
		progress.Stop()
		if err != nil {
			return nil, err
		}
		defer release()
		end, over := s.load.take(&req)
		if over != nil {
			return nil, permit.WithholdOver(over.Message, over.Hint+" The user will then be asked again.")
		}
		defer end()
		step.Placed()
		if err := r.confirm(ctx, permit); err != nil {
			return nil, err
		}
		if err := r.Call.Chat.Workspaces.CheckQuota(r.Call.Workspace(), r.runs.opts.Quota); err != nil {
			return nil, errors.Join(err, permit.Withhold("the workspaces of the chat hold as much as they may", "Call again when there is room."))
		}
		done, ok := r.Call.Chat.Workspaces.Begin(r.Call.Workspace())
		if !ok {
			return nil, calls.Changed(permit, r.Pack.ID)
		}
		defer done()
		progress = r.runs.opts.Road.Telling(ctx, r.Call, running)
		permit.Hide(r.Secrets.Logged)
		permit.Waiting(func(h changes.Holder) (over func()) { return r.waits(progress, permit, h) })
		permit.Ready(func() error { return r.confirm(ctx, permit) })
		result, err := permit.Run(ctx)
		r.runs.opts.Claims.Touch()
		progress.Stop()
		if err != nil {
			return nil, r.busy(err)
		}
		r.tell(permit.RunID(), result)
		e := r.envelope(permit.RunID(), result, req.Run.Policy.Limits)
		step.Ran(spans.Outcome{
			OK: e.OK, ExitCode: result.ExitCode, Signal: result.Signal, Cause: string(result.Cause),
			Level: result.Level.String(), Took: result.Duration,
		})
		return e, nil
	}}
}

// envelope turns the run's result into what the model gets.
func (r *Run) envelope(id string, result *sandbox.Result, limits sandbox.Limits) *envelope.Envelope {
	of := envelope.Run{Output: r.Output, Allows: r.Allows, Secrets: r.Secrets, Workspace: r.Call.Workspace()}
	of.Local = r.Call.Chat.Origin == gate.OriginClient || r.Call.Chat.Origin == gate.OriginMachine
	return of.Envelope(id, result, limits)
}

// place waits until the run may go on: until its chat has a free place, and until no
// other run can change what this run's answer is bound to, or the reverse.
func (r *Run) place(ctx context.Context, own *claims.Claim) (release func(), err error) {
	leave, err := r.Call.Chat.TakeRun(ctx)
	if err != nil {
		return nil, err
	}
	drop, err := r.runs.opts.Claims.Take(ctx, own)
	if err != nil {
		leave()
		return nil, err
	}
	return func() { drop(); leave() }, nil
}

// confirm makes sure that the run still is what was allowed. It is called when the
// run has its place, and again when it has its turn in folders, since a run of
// another server may have ended there in between, or the changes of one that was
// killed may have been completed.
//
// The files that the answer is bound to are always compared. The whole call is
// prepared again if the packs have changed, if another run has ended since (as one
// did if the run had to wait for its place or turn), or if the pack will not be
// copied. Nothing more is needed: the pack's copy is compared with the digest, and
// the runner compares the program, its interpreters and the folders.
func (r *Run) confirm(ctx context.Context, permit *gate.Permit) error {
	c := r.Call
	if r.waited || !permit.Copies() || r.runs.opts.Claims.Count() != c.Ended || c.Chat.Catalog(ctx) != c.Catalog {
		return r.again(ctx, permit)
	}
	if !r.Plan.Unchanged(permit.ByGrant()) {
		return calls.Changed(permit, r.Pack.ID)
	}
	return nil
}

// again prepares the call once more and makes sure that it still is what was allowed:
// a pack may have been detached, or a folder replaced.
func (r *Run) again(ctx context.Context, permit *gate.Permit) error {
	r.Call.Chat.CatchUp(ctx)
	r.Call.Catalog = r.Call.Chat.Catalog(ctx)
	now, err := r.runs.opts.Road.PrepareNow(ctx, r.Call)
	if err != nil || !permit.Covers(now.Request) {
		return calls.Changed(permit, r.Pack.ID)
	}
	return nil
}
