package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
	"github.com/packs-mcp/packs-mcp/internal/workspaces"
)

// newHandle is what a client says for a workspace that it does not have yet.
const newHandle = "new"

// workspaceKey is where a client that calls a pack's tool by its own name says
// which workspace it means: such a tool's arguments are the pack's.
const workspaceKey = "packs-mcp/workspace"

const (
	// maxWorkspaces is how many workspaces a chat may have beside its first.
	maxWorkspaces = 32
	// workspaceIdle is after how long a workspace that nobody used is forgotten.
	workspaceIdle = 24 * time.Hour
	// workspaceKept is for how long one that was used does not make room for another.
	workspaceKept = time.Hour
	// maxMeasured is how many names are looked at to find out how much the
	// workspaces of a chat hold; more is taken for too much.
	maxMeasured = 100_000
)

// A workspace is a folder that programs write to, under the handle by which a client
// names it. Each chat begins with one. More are for clients several of whose
// conversations are one chat, as those of one token are since 2026-07-28.
type workspace struct {
	handle    string          // 128 random bits in hexadecimal
	dir       string          // absolute folder, without links
	folder    os.FileInfo     // what it is; a run may try to put another in its place
	ownFolder bool            // made for this chat
	use       *workspaces.Use // of one's own folder; else nil

	// Of those beside a chat's first; the chat's mu guards them.
	call  [sha256.Size]byte // the call that it is kept for; zero when a program ran in it
	using int               // programs that run in it
	used  time.Time
}

// newWorkspace makes a workspace, or, with one of the user's own, a handle for that.
func (s *Server) newWorkspace() (*workspace, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("naming a workspace: %w", err)
	}
	sp := &workspace{handle: hex.EncodeToString(id[:]), dir: s.opts.Workspace, used: time.Now()}
	if sp.dir == "" {
		use, err := workspaces.Make(s.opts.Workspaces, sp.handle)
		if err != nil {
			return nil, err
		}
		sp.use, sp.dir, sp.ownFolder = use, use.Dir(), true
	} else if err := os.MkdirAll(sp.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the workspace: %w", err)
	}
	if err := sp.find(); err != nil {
		sp.leave()
		return nil, err
	}
	return sp, nil
}

// find notes which folder the workspace is.
func (sp *workspace) find() error {
	// Resolved once, so that what a person is shown is where programs run.
	resolved, err := filepath.EvalSymlinks(sp.dir)
	if err != nil {
		return fmt.Errorf("finding the workspace: %w", err)
	}
	sp.dir, err = filepath.Abs(resolved)
	if err != nil {
		return fmt.Errorf("finding the workspace: %w", err)
	}
	dir, err := packfs.Open(sp.dir)
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	defer dir.Close()
	if sp.folder, err = dir.Info(); err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	return nil
}

// openWorkspace opens the workspace, and nothing that was put in its place.
func (sp *workspace) openWorkspace() (*packfs.Dir, error) {
	return packfs.OpenSame(sp.dir, sp.folder, packfs.RefuseHardLinks)
}

// leave lets go of a workspace. What is in it stays until it is old, since a person may
// want it; an empty folder goes.
func (sp *workspace) leave() {
	if sp.use != nil {
		_ = sp.use.Leave() // a lock that stays is removed with the workspace
	}
}

// workspaceNamed returns the chat's workspace with a handle; nil when it has none.
// Of another chat's it knows no more than of one that never was.
func (c *chat) workspaceNamed(handle string) *workspace {
	if handle == c.handle {
		return c.workspace
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetWorkspaces(time.Now())
	sp := c.more[handle]
	if sp != nil {
		sp.used = time.Now()
	}
	return sp
}

// workspaces are all workspaces of the chat, its first before the others, which are
// sorted by their handles.
func (c *chat) workspaces() []*workspace {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*workspace, 0, 1+len(c.more))
	for _, sp := range c.more {
		all = append(all, sp)
	}
	slices.SortFunc(all, func(a, b *workspace) int { return strings.Compare(a.handle, b.handle) })
	return slices.Insert(all, 0, c.workspace)
}

// forgetWorkspaces lets go of those that were not used for long. The caller holds mu.
func (c *chat) forgetWorkspaces(now time.Time) {
	for handle, sp := range c.more {
		if sp.using == 0 && now.Sub(sp.used) >= workspaceIdle {
			delete(c.more, handle)
			sp.leave()
		}
	}
}

// makeRoom lets go of one workspace when there are too many: of one that is kept
// for a call which was never made, or else of the one that was idle longest. The
// caller holds mu.
func (c *chat) makeRoom(now time.Time) bool {
	if len(c.more) < maxWorkspaces {
		return true
	}
	var goes *workspace
	for _, sp := range c.more {
		unmade := sp.isKept()
		if sp.using > 0 || !unmade && now.Sub(sp.used) < workspaceKept {
			continue
		}
		if goes == nil || unmade && !goes.isKept() || unmade == goes.isKept() && sp.used.Before(goes.used) {
			goes = sp
		}
	}
	if goes == nil {
		return false
	}
	delete(c.more, goes.handle)
	goes.leave()
	return true
}

// isKept reports whether the workspace is kept for a call whose program never ran.
// The caller holds the chat's mu.
func (sp *workspace) isKept() bool { return sp.call != [sha256.Size]byte{} }

// currentWorkspace returns the workspace that the call is about.
func (c *call) currentWorkspace() *workspace {
	if c.workspace == nil {
		return c.chat.workspace
	}
	return c.workspace
}

// inWorkspace makes the call be about the workspace with this handle; without
// one, it is the chat's first.
func (c *call) inWorkspace(handle string) error {
	if handle == "" {
		return nil
	}
	if c.workspace = c.chat.workspaceNamed(handle); c.workspace != nil {
		return nil
	}
	return toolerr.New(toolerr.CodeNotFound, "Leave workspace out, or pass one that a run of this chat returned.", "there is no such workspace in this chat")
}

// runsIn is inWorkspace for a call that runs a program, which may want a
// workspace that nobody has used.
func (s *Server) runsIn(c *call, handle string) error {
	if handle != newHandle {
		return c.inWorkspace(handle)
	}
	if c.workspace != nil {
		return nil // as it was prepared before
	}
	if !c.chat.ownFolder {
		return toolerr.New(toolerr.CodeInvalidArguments, "Leave workspace out.", "the user named one workspace for everything, so there is no new one")
	}
	sp, err := s.keptWorkspace(c)
	c.workspace = sp
	return err
}

// keptWorkspace returns the workspace that is kept for this call: a call is prepared
// several times until its program runs, and made again by its client when a
// person answers late, and means the same one each time.
func (s *Server) keptWorkspace(c *call) (*workspace, error) {
	key := c.digest()
	ch := c.chat
	ch.mu.Lock()
	defer ch.mu.Unlock()
	now := time.Now()
	ch.forgetWorkspaces(now)
	for _, sp := range ch.more {
		if sp.call == key {
			sp.used = now
			return sp, nil
		}
	}
	if ch.isOver {
		return nil, errNoChat
	}
	if !ch.makeRoom(now) {
		return nil, toolerr.New(toolerr.CodeWorkspaceLimit, "Go on in one of those that runs of this chat returned, or leave workspace out.",
			"this chat has %d workspaces, and all were used lately", maxWorkspaces)
	}
	sp, err := s.newWorkspace()
	if err != nil {
		return nil, err
	}
	sp.call = key
	if ch.more == nil {
		ch.more = make(map[string]*workspace)
	}
	ch.more[sp.handle] = sp
	return sp, nil
}

// digest tells the call from others, however its client spells the arguments.
func (c *call) digest() [sha256.Size]byte {
	return sha256.Sum256(strictjson.Canonical([]any{c.tool.name, c.args.Tree.Value()}))
}

// begin takes up the call's workspace for a program that runs in it, and returns
// what gives it back. One that was kept for the call is the client's from now
// on. It is not ok when the workspace was let go meanwhile.
func (c *call) begin() (done func(), ok bool) {
	sp, ch := c.currentWorkspace(), c.chat
	if sp == ch.workspace {
		return func() {}, true
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.more[sp.handle] != sp {
		return nil, false
	}
	sp.call = [sha256.Size]byte{}
	sp.using++
	return func() {
		ch.mu.Lock()
		defer ch.mu.Unlock()
		sp.using--
		sp.used = time.Now()
	}, true
}

// checkQuota refuses the call if the workspaces of its chat together hold as much as
// one may hold: handles are no way around limits.workspace. The first has that limit
// of its own, at the end of each run. It looks at every file, so it is for a
// program that is about to start, and not for each look at a call.
func (s *Server) checkQuota(c *call) error {
	if c.currentWorkspace() == c.chat.workspace {
		return nil
	}
	limit := s.limits.Run.Workspace
	var held int64
	names := 0
	for _, sp := range c.chat.workspaces() {
		if !sp.ownFolder {
			continue
		}
		err := filepath.WalkDir(sp.dir, func(_ string, d fs.DirEntry, err error) error {
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

// workspaceURI is the URI of a file or folder of a workspace.
func workspaceURI(sp *workspace, name string) string {
	return address.URI{Scheme: address.SchemeWorkspace, Path: path.Join(sp.handle, name)}.String()
}
