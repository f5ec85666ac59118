package server

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
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// running is what a client is told while its program runs.
const running = "the program has been running"

// A changeSet is what a model gets of a run's changes in one folder.
type changeSet struct {
	Set     string       `json:"set"`
	Folder  string       `json:"folder"`
	Applied []string     `json:"applied,omitempty"` // paths in Folder
	Held    []heldChange `json:"held,omitempty"`    // wait for the user
	Refused []heldChange `json:"refused,omitempty"` // never applied
	More    int          `json:"more,omitempty"`    // how many are not listed
}

type heldChange struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// changesSchema says no more than a model needs before there are any: every list
// of tools has it three times.
const changesSchema = `{"type":"array","items":{"type":"object","properties":{"set":{"type":"string"},"folder":{"type":"string"},` +
	`"applied":{"type":"array","items":{"type":"string"}},"held":{"type":"array"},"refused":{"type":"array"},"more":{"type":"integer"}}}}`

// maxChanges is how many changes of each state a result lists, of one folder.
const maxChanges = 50

// addChanges adds what became of what the run changed.
func (e *runEnvelope) addChanges(res *sandbox.Result) {
	for _, set := range res.Changes {
		of := changeSet{Set: set.ID, Folder: safetext.Line(set.Folder)}
		for _, c := range set.Changes {
			path := safetext.Line(c.Path)
			held := heldChange{Path: path, Reason: safetext.Line(c.Reason)}
			switch {
			case c.State == changes.Applied && len(of.Applied) < maxChanges:
				of.Applied = append(of.Applied, path)
			case c.State == changes.Held && len(of.Held) < maxChanges:
				of.Held = append(of.Held, held)
			case c.State == changes.Refused && len(of.Refused) < maxChanges:
				of.Refused = append(of.Refused, held)
			default:
				of.More++
			}
		}
		e.Changes = append(e.Changes, of)
		if n := set.Count(changes.Held); n > 0 {
			what := "1 change waits"
			if n > 1 {
				what = fmt.Sprintf("%d changes wait", n)
			}
			e.Notes = append(e.Notes, fmt.Sprintf("%s for the user and is not in %s; tell the user to look on the approval page (packs-mcp approvals open) or with: packs-mcp changes show %s",
				what, safetext.Quote(set.Folder), set.ID))
		}
		if n := set.Count(changes.Refused); n > 0 {
			e.Notes = append(e.Notes, fmt.Sprintf("refused in %s, and lost: %d of the run's changes", safetext.Quote(set.Folder), n))
		}
	}
	if res.ChangesProblem != "" {
		e.Notes = append(e.Notes, "changes of the run were not applied, and are lost: "+safetext.Line(res.ChangesProblem))
	}
}

// waits tells the client and the log that the run waits for its turn, which h has.
func (r *run) waits(progress *teller, permit *gate.Permit, h changes.Holder) (over func()) {
	r.waited = true
	began := time.Now()
	log := r.server.logger.With("run", permit.RunID(), "pack", r.pack.ID, "dir", h.Folder)
	log.Info("a run waits for its turn in a folder", "holder", h.Run.ID, "holder_pack", h.Run.Pack, "holder_tool", h.Run.Tool, "holder_pid", h.PID)
	progress.turnNow("waiting for " + r.turnOf(h))
	return func() {
		log.Debug("a run waited for its turn in a folder", "took", time.Since(began).Round(time.Millisecond))
		progress.turn(running)
	}
}

// busy makes of a run that did not get its turn what a model may know of it.
func (r *run) busy(err error) error {
	e, ok := errors.AsType[*sandbox.BusyError](err)
	if !ok {
		return err
	}
	return toolerr.New(toolerr.CodeFolderBusy, "Nothing was started. Call again when the other run has ended, or tell the user; a run waits for as long as sandbox.timeout_max in the configuration.",
		"waited %s for %s", e.Waited, r.turnOf(e.Holder))
}

// turnOf says, to a client, whose turn it is and where. The pack and tool are named
// only if the client may know of the pack: the run may be another server's.
func (r *run) turnOf(h changes.Holder) string {
	if h.PID == 0 {
		return "its turn in a folder that another run may change"
	}
	of := ""
	if slices.ContainsFunc(r.server.listedPacks(r.call.catalog), func(p *packs.Pack) bool { return p.ID == h.Run.Pack }) {
		of = fmt.Sprintf("%s of %s, ", cmp.Or(h.Run.Tool, "a command"), h.Run.Pack)
	}
	return safetext.Line(fmt.Sprintf("its turn in %q, where %s (%sprocess %d) is at work", h.Folder, cmp.Or(h.Run.ID, "a run"), of, h.PID))
}

// tell writes to the server's log what a person has to know of the run's changes,
// whatever the model makes of it.
func (r *run) tell(id string, res *sandbox.Result) {
	for _, set := range res.Changes {
		if held, refused := set.Count(changes.Held), set.Count(changes.Refused); held+refused > 0 {
			r.server.logger.Warn("changes of a run were not applied", "run", id, "pack", r.pack.ID, "dir", set.Folder,
				"set", set.ID, "held", held, "refused", refused, "hint", "packs-mcp changes show "+set.ID)
		}
	}
	if res.ChangesProblem != "" {
		r.server.logger.Error("changes of a run are lost", "run", id, "pack", r.pack.ID, "err", res.ChangesProblem)
	}
}
