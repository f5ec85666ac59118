// Package layer reads a run's changes from its layer over one of the user's folders, and
// decides whether each change may be applied, is held for a person, or is refused.
//
// It also makes the copies of folders that serve as layers. It does not change the user's
// folder or store anything: see packages apply and journal.
package layer

import (
	"context"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// A Folder is the user's folder below a layer.
type Folder struct {
	Path string // with links resolved
	Dir  *tree.Dir
	// Marker is later than all changes before the turn, and not later than any change
	// after it; 0 if the system has no times of change.
	Marker int64
	// Clockless says that the system's clock was set since: times of change cannot be
	// compared with Marker, so changes of all existing files are in conflict.
	Clockless bool
	Git       *GitFolder     // as in the turn's Folder
	Names     *protect.Names // protected
	Own       []string       // more protected paths, below the folder, with slashes
	Whole     bool           // all of the folder is protected
	InGit     bool           // the folder is in a git folder: every name in it belongs to git
	// GitConfig lists the user's own files with git settings, such as ~/.gitconfig.
	// Files in the folder that these or a repository's settings name are protected.
	GitConfig []string
	Home      string // the user's home folder, for ~/ in these; empty: not known
}

// A GitFolder says where git's files are below a Folder, with slashes; "." is
// the Folder itself.
type GitFolder struct {
	Dir    string // with HEAD and index: "worktrees/x"
	Common string // with objects and refs: "."
}

// An Ending says how a run ended, and what the user allowed it to do.
type Ending struct {
	Killed   string // why it did not end by itself: "the time limit"; empty: it did
	Review   bool   // hold every change
	GitWrite bool   // apply commits as git's data
}

// CopyLimits bound a copy. Zero means 64 MiB and 5,000 names.
type CopyLimits struct {
	Bytes int64 // of files that the file system did not clone
	Names int
	// CloneOnly fails with ErrNoClone at the first file that cannot be cloned.
	CloneOnly bool
}

// Errors that end a copy early. The caller then chooses another layer.
var (
	errTooLarge = errors.New("the folder is too large to be copied")
	errNoClone  = errors.New("the file system does not clone files")
)

// Read compares a layer with the folder. It returns the differences as ops, each with its
// state, in an order in which they can be carried out, and git's lock files that they
// need. c describes the copy before the run; it is nil if up is an overlay's upper folder.
//
// Read may change modes in up to read it. The ops read their content from up, so up must
// stay open while they are used.
func Read(ctx context.Context, f *Folder, up *tree.Dir, c *Copy, end Ending) (ops []record.Op, locks []string, err error) {
	r := &reading{ctx: ctx, folder: f, up: up, copy: c, end: end}
	if err := r.read(); err != nil {
		return nil, nil, err
	}
	r.commits()
	r.classify()
	return r.ops, r.locks, nil
}
