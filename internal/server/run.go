package server

import (
	"context"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/claims"
	"github.com/packs-mcp/packs-mcp/internal/server/envelope"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// A run is one program of a call, from the permit to the result.
type run struct {
	server  *Server
	call    *calls.Call
	pack    *packs.Pack
	plan    *plan.Plan
	output  tools.Output
	allows  func(code int) bool
	secrets *redact.Secrets // that must not be in the result
	waited  bool            // the run waited for its turn in a folder
}

func (r *run) action(req gate.Request) *calls.Action {
	return &calls.Action{Request: req, Perform: func(ctx context.Context, permit *gate.Permit) (_ any, err error) {
		step := spans.From(ctx).Run(permit.RunID())
		defer func() { step.End(err != nil) }()
		var release func()
		progress := r.server.road.Telling(ctx, r.call, "waiting for other programs to end")
		wire.Aside(ctx, func() { release, err = r.place(ctx, claims.Of(permit, req.Run)) })
		progress.Stop()
		if err != nil {
			return nil, err
		}
		defer release()
		step.Placed()
		if err := r.confirm(ctx, permit); err != nil {
			return nil, err
		}
		if err := r.call.Chat.Workspaces.CheckQuota(r.call.Workspace(), r.server.limits.Run.Workspace); err != nil {
			return nil, errors.Join(err, permit.Withhold("the workspaces of the chat hold as much as they may", "Call again when there is room."))
		}
		done, ok := r.call.Chat.Workspaces.Begin(r.call.Workspace())
		if !ok {
			return nil, calls.Changed(permit, r.pack.ID)
		}
		defer done()
		progress = r.server.road.Telling(ctx, r.call, running)
		permit.Hide(r.secrets.Logged)
		permit.Waiting(func(h changes.Holder) (over func()) { return r.waits(progress, permit, h) })
		permit.Ready(func() error { return r.confirm(ctx, permit) })
		result, err := permit.Run(ctx)
		r.server.claims.Touch()
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
func (r *run) envelope(id string, result *sandbox.Result, limits sandbox.Limits) *envelope.Envelope {
	of := envelope.Run{Output: r.output, Allows: r.allows, Secrets: r.secrets, Workspace: r.call.Workspace()}
	of.Local = r.call.Chat.Origin == gate.OriginClient || r.call.Chat.Origin == gate.OriginMachine
	return of.Envelope(id, result, limits)
}

// place waits until the run may go on: until its chat has a free place, and until no
// other run can change what this run's answer is bound to, or the reverse.
func (r *run) place(ctx context.Context, own *claims.Claim) (release func(), err error) {
	leave, err := r.call.Chat.TakeRun(ctx)
	if err != nil {
		return nil, err
	}
	drop, err := r.server.claims.Take(ctx, own)
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
func (r *run) confirm(ctx context.Context, permit *gate.Permit) error {
	s, c := r.server, r.call
	if r.waited || !permit.Copies() || s.claims.Count() != c.Ended || c.Chat.Catalog(ctx) != c.Catalog {
		return r.again(ctx, permit)
	}
	if !r.plan.Unchanged(permit.ByGrant()) {
		return calls.Changed(permit, r.pack.ID)
	}
	return nil
}

// again prepares the call once more and makes sure that it still is what was allowed:
// a pack may have been detached, or a folder replaced.
func (r *run) again(ctx context.Context, permit *gate.Permit) error {
	r.call.Catalog = r.call.Chat.Catalog(ctx)
	now, err := r.server.road.PrepareNow(ctx, r.call)
	if err != nil || !permit.Covers(now.Request) {
		return calls.Changed(permit, r.pack.ID)
	}
	return nil
}
