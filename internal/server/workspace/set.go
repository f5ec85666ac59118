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
	// maxMore is how many workspaces a chat may have in addition to its first.
	maxMore = 32
	// idle is how long an unused workspace is remembered.
	idle = 24 * time.Hour
	// kept is how long a used workspace does not make room for another.
	kept = time.Hour
	// maxMeasured is how many names are looked at to measure a chat's workspaces;
	// more counts as too large.
	maxMeasured = 100_000
)

// A Set holds the workspaces of one chat. Make one with [NewSet]. It is safe for
// concurrent use.
type Set struct {
	at    Place
	first *Workspace // for calls without a handle

	mu     sync.Mutex
	more   map[string]*Workspace // :: handle → a further workspace
	closed bool
}

// NewSet makes the first workspace of a chat. The caller closes the set.
func NewSet(at Place) (*Set, error) {
	first, err := at.open()
	if err != nil {
		return nil, err
	}
	at.First = ""
	return &Set{at: at, first: first}, nil
}

// First returns the workspace for calls without a handle.
func (s *Set) First() *Workspace { return s.first }

// Named returns the workspace with a handle; nil if there is none. A handle of
// another chat is treated like one that never existed.
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

// All returns all workspaces: the first, then the others, sorted by their handles.
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

// Close releases all workspaces, and makes no more.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, w := range s.All() {
		w.leave()
	}
}

// forget releases those that were not used for long. The caller holds mu.
func (s *Set) forget(now time.Time) {
	for handle, w := range s.more {
		if w.using == 0 && now.Sub(w.used) >= idle {
			delete(s.more, handle)
			w.leave()
		}
	}
}

// makeRoom releases one workspace if there are too many: one that was kept for a call
// that was never made, or else the one that was idle longest. It reports whether
// there is room. The caller holds mu.
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

// Keep returns the new workspace that is kept for the call with this digest. A call
// is prepared several times until its program runs, and its client makes it again if
// a person answers late; it gets the same workspace each time.
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

// Begin takes a workspace into use for a program, and returns the function that ends
// the use. A workspace that was kept for a call becomes the client's. ok is false if
// the workspace was released meanwhile.
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

// CheckQuota refuses a program that is about to start in a workspace if the chat's
// workspaces together hold limit bytes, as much as one may hold: handles cannot be
// used to exceed limits.workspace. The first workspace has that limit of its own,
// checked at the end of each run. CheckQuota looks at every file, so do not call it
// each time a call is prepared.
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
				held = limit // what cannot be measured counts as too large
				return fs.SkipAll
			}
			if err != nil {
				return nil // a program removed it just now
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				held += info.Size()
			}
			return nil
		})
		if err != nil || held >= limit {
			return toolerr.New(toolerr.CodeWorkspaceLimit, "Leave workspace out, or tell the user; files in the workspaces must be removed.",
				"the workspaces of this chat hold %d bytes or more together", limit)
		}
	}
	return nil
}
