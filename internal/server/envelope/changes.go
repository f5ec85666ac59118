package envelope

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// A changeSet is what a model gets to know about a run's changes in one folder.
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

// changesSchema says no more than a model needs before there are any changes: every
// list of tools contains it three times.
const changesSchema = `{"type":"array","items":{"type":"object","properties":{"set":{"type":"string"},"folder":{"type":"string"},` +
	`"applied":{"type":"array","items":{"type":"string"}},"held":{"type":"array"},"refused":{"type":"array"},"more":{"type":"integer"}}}}`

// maxChanges is how many changes of each state a result lists for one folder.
const maxChanges = 50

// addChanges adds what happened to the run's changes.
func (e *Envelope) addChanges(res *sandbox.Result) {
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
