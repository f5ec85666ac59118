package changescmd

import (
	"context"
	"errors"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/approvals"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// pageSets gives the approval page access to the change sets.
type pageSets struct {
	store *changes.Store
	log   audit.Writer

	mu      sync.Mutex
	changed chan struct{} // closed by the next decision
}

func NewPageSets(store *changes.Store, log audit.Writer) *pageSets {
	return &pageSets{store: store, log: log, changed: make(chan struct{})}
}

func (p *pageSets) Changes() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (p *pageSets) Sets() ([]approvals.ChangeSet, error) {
	sets, err := p.store.List()
	if err != nil {
		return nil, err
	}
	var all []approvals.ChangeSet
	for _, set := range sets {
		s := approvals.ChangeSet{
			ID: set.ID, Pack: set.Run.Pack, Tool: set.Run.Tool, Run: set.Run.ID, Folder: set.Folder,
			Made: set.Made, Expires: set.Expires, UndoLost: set.UndoLost,
			Held: changesIn(set, changes.Held), Applied: changesIn(set, changes.Applied),
		}
		switch {
		case set.Undoes != "":
			s.Act = "you took changes back"
		case set.From != "":
			s.Act = "you applied what waited"
		}
		if !set.Expired && len(s.Held)+len(s.Applied) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

// changesIn returns the changes of a set that are in one of the states. It leaves out
// what another set did with them: that set has them, and only it can undo that.
func changesIn(set *changes.Set, states ...changes.State) []approvals.Change {
	var all []approvals.Change
	for _, c := range set.Changes {
		for _, state := range states {
			if c.State == state && c.By == "" {
				all = append(all, approvals.Change{Path: c.Path, Kind: string(c.Kind), Reason: c.Reason})
			}
		}
	}
	return all
}

func (p *pageSets) View(ctx context.Context, id string, paths []string) (approvals.ChangeView, error) {
	v, err := p.store.Show(ctx, id, paths...)
	if err != nil {
		return approvals.ChangeView{}, err
	}
	var out approvals.ChangeView
	for _, part := range v.Parts {
		out.Diffs = append(out.Diffs, approvals.Diff(part))
	}
	switch {
	case len(v.Parts) == 0:
		return out, errors.New("nothing of it waits for you any more")
	case !v.Cut:
		out.Token = v.Token
	}
	return out, nil
}

func (p *pageSets) Apply(ctx context.Context, id, token string, paths []string) (approvals.ChangeResult, error) {
	done, err := p.decide(eventChangesApply, id, paths, func(id string) (*changes.Set, error) {
		return p.store.Apply(ctx, id, token, paths...)
	})
	if err != nil {
		return approvals.ChangeResult{}, err
	}
	return approvals.ChangeResult{Done: done.Count(changes.Applied), Left: changesIn(done, changes.Held, changes.Refused)}, nil
}

func (p *pageSets) Discard(ctx context.Context, id string, paths []string) (approvals.ChangeResult, error) {
	before, err := p.store.Get(id)
	if err != nil {
		return approvals.ChangeResult{}, err
	}
	done, err := p.decide(eventChangesDiscard, id, paths, func(id string) (*changes.Set, error) {
		return p.store.Discard(ctx, id, paths...)
	})
	if err != nil {
		return approvals.ChangeResult{}, err
	}
	return approvals.ChangeResult{Done: done.Count(changes.Discarded) - before.Count(changes.Discarded)}, nil
}

func (p *pageSets) Undo(ctx context.Context, id string) (approvals.ChangeResult, error) {
	done, err := p.decide(eventChangesUndo, id, nil, func(id string) (*changes.Set, error) {
		return p.store.Undo(ctx, id)
	})
	if err != nil {
		return approvals.ChangeResult{}, err
	}
	return approvals.ChangeResult{Done: done.Count(changes.Applied), Left: changesIn(done, changes.Held, changes.Refused)}, nil
}

// decide carries out a person's decision from the page, and notifies all pages.
func (p *pageSets) decide(event audit.Event, id string, paths []string, do func(id string) (*changes.Set, error)) (*changes.Set, error) {
	set, err := p.store.Get(id)
	if err != nil {
		return nil, err
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.changed)
		p.changed = make(chan struct{})
	}()
	return decideChanges(p.log, queue.ChannelPage, event, set, paths, do)
}
