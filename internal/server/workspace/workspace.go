// Package workspace has the workspaces of one chat: the folders to which its programs
// write, and the handles by which a client refers to them. Each chat begins with one.
// More are for clients that have several conversations in one chat, as with one token
// since 2026-07-28.
//
// It does not decide who may read a workspace, and it runs nothing in one. It does
// not remove what programs left either: package workspaces does, once it is old.
package workspace

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/workspaces"
)

// New is the handle with which a client asks for a new workspace.
const New = "new"

// A Place says where workspaces are.
type Place struct {
	Each   string // the folder in which each workspace gets a folder of its own
	Shared string // if not empty: the one folder of every chat instead
	// First is the handle of the first workspace, for a chat that several servers go on
	// with; empty: a new one.
	First string
}

// A Workspace is a folder that programs write to.
type Workspace struct {
	Handle string      // 128 random bits in hexadecimal
	Dir    string      // absolute folder, without links
	Folder os.FileInfo // its identity; a run may try to replace it
	IsOwn  bool        // made for this chat

	use *workspaces.Use // if the folder was made for the chat; otherwise nil

	// For workspaces other than a chat's first; guarded by the set's mu.
	call  [sha256.Size]byte // the call for which it is kept; zero once a program ran in it
	using int               // how many programs run in it
	used  time.Time
}

// open makes a workspace, or, if the user named a folder, a handle for that.
func (at Place) open() (*Workspace, error) {
	if at.First != "" && at.Shared == "" {
		return at.again()
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("naming a workspace: %w", err)
	}
	w := &Workspace{Handle: hex.EncodeToString(id[:]), Dir: at.Shared, used: time.Now()}
	if w.Dir == "" {
		use, err := workspaces.Make(at.Each, w.Handle)
		if err != nil {
			return nil, err
		}
		w.use, w.Dir, w.IsOwn = use, use.Dir(), true
	} else if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the workspace: %w", err)
	}
	if err := w.find(); err != nil {
		w.leave()
		return nil, err
	}
	return w, nil
}

// again makes the first workspace, or opens it where it is already.
func (at Place) again() (*Workspace, error) {
	use, err := workspaces.Join(at.Each, at.First)
	if err != nil {
		return nil, err
	}
	w := &Workspace{Handle: at.First, Dir: use.Dir(), IsOwn: true, use: use, used: time.Now()}
	if err := w.find(); err != nil {
		w.leave()
		return nil, err
	}
	return w, nil
}

// find records the workspace's folder and its identity.
func (w *Workspace) find() error {
	// Resolve it once, so that programs run exactly where a person is told.
	resolved, err := filepath.EvalSymlinks(w.Dir)
	if err != nil {
		return fmt.Errorf("finding the workspace: %w", err)
	}
	w.Dir, err = filepath.Abs(resolved)
	if err != nil {
		return fmt.Errorf("finding the workspace: %w", err)
	}
	dir, err := packfs.Open(w.Dir)
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	defer dir.Close()
	if w.Folder, err = dir.Info(); err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	return nil
}

// Open opens the workspace's own folder, and not one that replaced it.
func (w *Workspace) Open() (*packfs.Dir, error) {
	return packfs.OpenSame(w.Dir, w.Folder, packfs.RefuseHardLinks)
}

// URI returns the URI of a file or folder of the workspace.
func (w *Workspace) URI(name string) string {
	return address.URI{Scheme: address.SchemeWorkspace, Path: path.Join(w.Handle, name)}.String()
}

// leave releases a workspace. Its files stay until they are old, since a person may
// want them; an empty folder is removed.
func (w *Workspace) leave() {
	if w.use != nil {
		_ = w.use.Leave() // a remaining lock is removed with the workspace
	}
}

// isKept reports whether the workspace is kept for a call whose program never ran.
// The caller holds the set's mu.
func (w *Workspace) isKept() bool { return w.call != [sha256.Size]byte{} }
