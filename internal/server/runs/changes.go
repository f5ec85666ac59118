package runs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// running is what a client is told while the program runs.
const running = "the program has been running"

// waits tells the client and the log that the run waits for its turn, which h has
// now.
func (r *Run) waits(progress *calls.Teller, permit *gate.Permit, h changes.Holder) (over func()) {
	r.waited = true
	began := time.Now()
	log := r.runs.opts.Logger.With("run", permit.RunID(), "pack", r.Pack.ID, "dir", h.Folder)
	log.Info("a run waits for its turn in a folder", "holder", h.Run.ID, "holder_pack", h.Run.Pack, "holder_tool", h.Run.Tool, "holder_pid", h.PID)
	progress.TurnNow("waiting for " + r.turnOf(h))
	return func() {
		log.Debug("a run waited for its turn in a folder", "took", time.Since(began).Round(time.Millisecond))
		progress.Turn(running)
	}
}

// busy turns the error of a run that did not get its turn into what a model may know
// about it.
func (r *Run) busy(err error) error {
	e, ok := errors.AsType[*sandbox.BusyError](err)
	if !ok {
		return err
	}
	return toolerr.New(toolerr.CodeFolderBusy, "Nothing was started. Call again when the other run has ended, or tell the user; a run waits for as long as sandbox.timeout_max in the configuration.",
		"waited %s for %s", e.Waited, r.turnOf(e.Holder))
}

// turnOf tells a client whose turn it is, and where. It names the pack and tool only
// if the client may know about the pack: the run may be another server's.
func (r *Run) turnOf(h changes.Holder) string {
	if h.PID == 0 {
		return "its turn in a folder that another run may change"
	}
	of := ""
	if slices.ContainsFunc(r.runs.opts.Offer.Packs(r.Call.Catalog), func(p *packs.Pack) bool { return p.ID == h.Run.Pack }) {
		of = fmt.Sprintf("%s of %s, ", cmp.Or(h.Run.Tool, "a command"), h.Run.Pack)
	}
	return safetext.Line(fmt.Sprintf("its turn in %q, where %s (%sprocess %d) is at work", h.Folder, cmp.Or(h.Run.ID, "a run"), of, h.PID))
}

// tell writes to the server's log what a person has to know about the run's changes,
// whatever the model does with the result.
func (r *Run) tell(id string, res *sandbox.Result) {
	for _, set := range res.Changes {
		if held, refused := set.Count(changes.Held), set.Count(changes.Refused); held+refused > 0 {
			r.runs.opts.Logger.Warn("changes of a run were not applied", "run", id, "pack", r.Pack.ID, "dir", set.Folder,
				"set", set.ID, "held", held, "refused", refused, "hint", "packs-mcp changes show "+set.ID)
		}
	}
	if res.ChangesProblem != "" {
		r.runs.opts.Logger.Error("changes of a run are lost", "run", id, "pack", r.Pack.ID, "err", res.ChangesProblem)
	}
}
