package workspace

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

const (
	// maxMore is how many workspaces a chat may have beside its first.
	maxMore = 32
	// idle is after how long a workspace that nobody used is forgotten.
	idle = 24 * time.Hour
	// kept is for how long one that was used does not make room for another.
	kept = time.Hour
	// maxMeasured is how many names are looked at to find out how much the
	// workspaces of a chat hold; more is taken for too much.
	maxMeasured = 100_000
)

// A Set is the workspaces of one chat. Make one with [NewSet]. It is safe for concurrent
// use.
type Set struct {
	at    Place
	first *Workspace // for calls without a handle

	mu     sync.Mutex
	more   map[string]*Workspace // :: handle → a workspace beside the first
	closed bool
}

// NewSet makes the first workspace of a chat. The caller closes the set.
func NewSet(at Place) (*Set, error) {
	first, err := at.open()
	if err != nil {
		return nil, err
	}
	return &Set{at: at, first: first}, nil
}

// First returns the workspace of calls without a handle.
func (s *Set) First() *Workspace { return s.first }

// Named returns the workspace with a handle; nil when there is none. Of another chat's it
// knows no more than of one that never was.
func (s *Set) Named(handle string) *Workspace {
	if handle == s.first.Handle {
		return s.first
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(time.Now())
	w := s.more[handle]
	if w != nil {
		w.used = time.Now()
	}
	return w
}

// All returns all workspaces: the first, then the others, which are sorted by their
// handles.
func (s *Set) All() []*Workspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Workspace, 0, 1+len(s.more))
	for _, w := range s.more {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *Workspace) int { return strings.Compare(a.Handle, b.Handle) })
	return slices.Insert(all, 0, s.first)
}

// Close lets go of all workspaces, and makes no more.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, w := range s.All() {
		w.leave()
	}
}

// forget lets go of those that were not used for long. The caller holds mu.
func (s *Set) forget(now time.Time) {
	for handle, w := range s.more {
		if w.using == 0 && now.Sub(w.used) >= idle {
			delete(s.more, handle)
			w.leave()
		}
	}
}

// makeRoom lets go of one workspace when there are too many: of one that is kept
// for a call which was never made, or else of the one that was idle longest. It reports
// whether there is room. The caller holds mu.
func (s *Set) makeRoom(now time.Time) bool {
	if len(s.more) < maxMore {
		return true
	}
	var goes *Workspace
	for _, w := range s.more {
		unmade := w.isKept()
		if w.using > 0 || !unmade && now.Sub(w.used) < kept {
			continue
		}
		if goes == nil || unmade && !goes.isKept() || unmade == goes.isKept() && w.used.Before(goes.used) {
			goes = w
		}
	}
	if goes == nil {
		return false
	}
	delete(s.more, goes.Handle)
	goes.leave()
	return true
}

// Keep returns the new workspace that is kept for a call with this digest. A call is
// prepared several times until its program runs, and made again by its client when a
// person answers late, and means the same workspace each time.
func (s *Set) Keep(call [sha256.Size]byte) (*Workspace, error) {
	if !s.first.IsOwn {
		return nil, toolerr.New(toolerr.CodeInvalidArguments, "Leave workspace out.", "the user named one workspace for everything, so there is no new one")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.forget(now)
	for _, w := range s.more {
		if w.call == call {
			w.used = now
			return w, nil
		}
	}
	if s.closed {
		return nil, errors.New("this chat has ended")
	}
	if !s.makeRoom(now) {
		return nil, toolerr.New(toolerr.CodeWorkspaceLimit, "Go on in one of those that runs of this chat returned, or leave workspace out.",
			"this chat has %d workspaces, and all were used lately", maxMore)
	}
	w, err := s.at.open()
	if err != nil {
		return nil, err
	}
	w.call = call
	if s.more == nil {
		s.more = make(map[string]*Workspace)
	}
	s.more[w.Handle] = w
	return w, nil
}

// Begin takes up a workspace for a program that runs in it, and returns what gives it
// back. One that was kept for a call is the client's from now on. It is not ok when the
// workspace was let go meanwhile.
func (s *Set) Begin(w *Workspace) (done func(), ok bool) {
	if w == s.first {
		return func() {}, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more[w.Handle] != w {
		return nil, false
	}
	w.call = [sha256.Size]byte{}
	w.using++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.using--
		w.used = time.Now()
	}, true
}

// CheckQuota refuses a program that is about to start in a workspace if the workspaces
// together hold limit bytes, as much as one may hold: handles are no way around
// limits.workspace. The first has that limit of its own, at the end of each run. It
// looks at every file, so it is not for each look at a call.
func (s *Set) CheckQuota(w *Workspace, limit int64) error {
	if w == s.first {
		return nil
	}
	var held int64
	names := 0
	for _, w := range s.All() {
		if !w.IsOwn {
			continue
		}
		err := filepath.WalkDir(w.Dir, func(_ string, d fs.DirEntry, err error) error {
			if names++; err != nil && !errors.Is(err, fs.ErrNotExist) || names > maxMeasured {
				held = limit // what cannot be measured is too much
				return fs.SkipAll
			}
			if err != nil {
				return nil // a program took it away just now
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				held += info.Size()
			}
			return nil
		})
		if err != nil || held >= limit {
			return toolerr.New(toolerr.CodeWorkspaceLimit, "Leave workspace out, or tell the user; files in the workspaces have to be removed.",
				"the workspaces of this chat hold %d bytes or more together", limit)
		}
	}
	return nil
}
