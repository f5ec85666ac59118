package approvals

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Changes gives access to what runs changed in the user's folders. Its strings
// need not be safe to show, except those of a [Diff]; the page escapes them. Its
// errors are shown.
type Changes interface {
	// Sets returns the sets with changes that wait for a person or can be
	// undone, newest first.
	Sets() ([]ChangeSet, error)
	// View returns what waits in a set. With paths, it returns only what waits
	// at those paths.
	View(ctx context.Context, id string, paths []string) (ChangeView, error)
	// Apply applies what the view with that token showed; paths are the paths of
	// that view. Discard drops what waits, and Undo undoes what was applied.
	Apply(ctx context.Context, id, token string, paths []string) (ChangeResult, error)
	Discard(ctx context.Context, id string, paths []string) (ChangeResult, error)
	Undo(ctx context.Context, id string) (ChangeResult, error)
	// Changes returns a channel that is closed the next time this process
	// changes a set. Changes by a run do not count, since the end of a run
	// changes the calls.
	Changes() <-chan struct{}
}

// A ChangeSet is what one run, or one apply or undo by a person, did to one
// folder.
type ChangeSet struct {
	ID     string
	Pack   string
	Tool   string
	Run    string
	Folder string
	// Act describes the person's act that made the set; empty if a run made it.
	Act      string
	Made     time.Time
	Expires  time.Time // when the waiting changes, and the data that Undo needs, are removed
	Held     []Change
	Applied  []Change
	UndoLost string // why Undo cannot undo everything; empty: it can
}

// A Change is one change of a set.
type Change struct {
	Path   string // as it is
	Kind   string // create, replace …
	Reason string // why it waits
}

// A ChangeView shows what waits in a set, compared with the folder as it is now.
type ChangeView struct {
	Diffs []Diff
	// Token identifies exactly this view. It is empty if the view is incomplete
	// and so cannot be applied.
	Token string
}

// A Diff shows what one change does.
type Diff struct {
	Path string
	Text string // lines, safe to show; a unified diff begins with "diff "
	Cut  bool   // omitted here; shown when requested alone
}

// A ChangeResult is the outcome of a person's decision.
type ChangeResult struct {
	Done int
	Left []Change // changes not done, with reasons
}

// Bounds of what the page receives about changes.
const (
	maxPageSets    = 50 // in each of the two lists
	maxPageChanges = 50 // of a set, in each of the two lists
	changesTime    = 20 * time.Second
)

// The JSON that the page receives about changes.
type (
	pageChanges struct {
		Held    []pageSet `json:"held"`
		Applied []pageSet `json:"applied"`
		More    int       `json:"more"` // sets that are not listed
		Problem string    `json:"problem"`
	}
	pageSet struct {
		ID       string       `json:"id"`
		Pack     string       `json:"pack"`
		Tool     string       `json:"tool"`
		Run      string       `json:"run"`
		Folder   string       `json:"folder"`
		Act      string       `json:"act"`
		Made     time.Time    `json:"made"`
		Expires  time.Time    `json:"expires"`
		Count    int          `json:"count"`
		Changes  []pageChange `json:"changes"` // the first of Count
		UndoLost string       `json:"undo_lost"`
	}
	pageChange struct {
		Key    string `json:"key"` // the path, in base64; see pageArtifact
		Path   string `json:"path"`
		Kind   string `json:"kind"`
		Reason string `json:"reason"`
	}
	pageDiff struct {
		Key  string `json:"key"`
		Path string `json:"path"`
		Text string `json:"text"`
		Cut  bool   `json:"cut"`
	}
	pageView struct {
		Diffs []pageDiff `json:"diffs"`
		Token string     `json:"token"`
	}
	pageResult struct {
		Done int          `json:"done"`
		Left []pageChange `json:"left"`
	}
)

// changeSets returns what the page receives about all sets.
func (d *Desk) changeSets() pageChanges {
	all := pageChanges{Held: []pageSet{}, Applied: []pageSet{}}
	if d.o.Changes == nil {
		return all
	}
	sets, err := d.o.Changes.Sets()
	if err != nil {
		all.Problem = safetext.Line(err.Error())
		return all
	}
	add := func(to *[]pageSet, s *ChangeSet, changes []Change) {
		switch {
		case len(changes) == 0:
		case len(*to) >= maxPageSets:
			all.More++
		default:
			*to = append(*to, pageSet{
				ID: s.ID, Pack: safetext.Line(s.Pack), Tool: safetext.Line(s.Tool), Run: safetext.Line(s.Run), Folder: safetext.Line(s.Folder),
				Act: safetext.Line(s.Act), Made: s.Made, Expires: s.Expires, Count: len(changes), UndoLost: safetext.Line(s.UndoLost),
				Changes: changesOf(changes),
			})
		}
	}
	for i := range sets {
		add(&all.Held, &sets[i], sets[i].Held)
		add(&all.Applied, &sets[i], sets[i].Applied)
	}
	return all
}

// changesOf returns the first changes, made safe to show.
func changesOf(changes []Change) []pageChange {
	all := []pageChange{}
	for _, c := range changes[:min(len(changes), maxPageChanges)] {
		all = append(all, pageChange{Key: keyOf(c.Path), Path: safetext.Line(c.Path), Kind: safetext.Line(c.Kind), Reason: safetext.Line(c.Reason)})
	}
	return all
}

func keyOf(path string) string { return base64.RawURLEncoding.EncodeToString([]byte(path)) }

// A changeRequest is a request about a set from the page's script.
type changeRequest struct {
	Set   string   `json:"set"`
	Keys  []string `json:"keys"` // of paths; none: the whole set
	Do    string   `json:"do"`   // apply, discard or undo; not for a view
	Token string   `json:"token"`
}

// readChange reads a request about a set. If it reports false, it has already
// answered.
func (d *Desk) readChange(w http.ResponseWriter, r *http.Request) (in changeRequest, paths []string, ok bool) {
	if !control.ReadJSON(w, r, &in) {
		return in, nil, false
	}
	if d.o.Changes == nil || in.Set == "" {
		control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, "say which change set")
		return in, nil, false
	}
	for _, key := range in.Keys {
		path, err := pathOf(key)
		if err != nil {
			control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, err.Error())
			return in, nil, false
		}
		paths = append(paths, path)
	}
	return in, paths, true
}

// viewChanges sends what waits in a set.
func (d *Desk) viewChanges(w http.ResponseWriter, r *http.Request) {
	in, paths, ok := d.readChange(w, r)
	if !ok {
		return
	}
	ctx, done := context.WithTimeout(r.Context(), changesTime)
	defer done()
	v, err := d.o.Changes.View(ctx, in.Set, paths)
	if err != nil {
		control.Fail(w, http.StatusConflict, control.ProblemInvalid, safetext.Line(err.Error()))
		return
	}
	out := pageView{Diffs: []pageDiff{}, Token: v.Token}
	for _, p := range v.Diffs {
		out.Diffs = append(out.Diffs, pageDiff{Key: keyOf(p.Path), Path: safetext.Line(p.Path), Text: p.Text, Cut: p.Cut})
	}
	control.Answer(w, out)
}

// decideChanges carries out a person's decision about a set.
func (d *Desk) decideChanges(w http.ResponseWriter, r *http.Request) {
	in, paths, ok := d.readChange(w, r)
	if !ok {
		return
	}
	// Do not use the request's context: the decision is carried out even if the
	// page closes.
	ctx, done := context.WithTimeout(d.ctx, changesTime)
	defer done()
	var result ChangeResult
	var err error
	switch {
	case in.Do == "apply" && in.Token == "":
		control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, "look at the changes before you apply them here")
		return
	case in.Do == "apply":
		result, err = d.o.Changes.Apply(ctx, in.Set, in.Token, paths)
	case in.Do == "discard":
		result, err = d.o.Changes.Discard(ctx, in.Set, paths)
	case in.Do == "undo" && len(paths) == 0:
		result, err = d.o.Changes.Undo(ctx, in.Set)
	default:
		control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, "a whole set can be applied, discarded or undone, and parts of it applied or discarded")
		return
	}
	if err != nil {
		control.Fail(w, http.StatusConflict, control.ProblemInvalid, safetext.Line(err.Error()))
		return
	}
	control.Answer(w, pageResult{Done: result.Done, Left: changesOf(result.Left)})
}
