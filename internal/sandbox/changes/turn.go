package changes

import (
	"context"
	"errors"
	"os"
	"time"
)

// A Run names what made changes. Its fields are only stored and shown.
type Run struct {
	ID   string `json:"id"`
	Pack string `json:"pack,omitempty"`
	Tool string `json:"tool,omitempty"`
}

// A Folder is a folder of the user's that a run may change.
type Folder struct {
	Path string // absolute; links in it are followed once, by Begin
	// Git is not nil for a folder that is a git folder, or part of one, outside
	// of the project: of a worktree or a submodule. All of it is protected.
	Git *GitFolder
}

// A GitFolder says where git's files are below a Folder, with slashes; "." is
// the Folder itself.
type GitFolder struct {
	Dir    string // with HEAD and index: "worktrees/x"
	Common string // with objects and refs: "."
}

// A Holder is a run that has the turn in a folder.
type Holder struct {
	Run    Run       `json:"run"`
	PID    int       `json:"pid"`
	Since  time.Time `json:"since"`
	Folder string    `json:"folder"`
}

// A Turn is the right of one run to change its folders. It excludes all runs of
// this user, in any server, that may change a folder which is the same, above
// or below. It ends with Close, or with the process.
type Turn struct{}

// Begin waits for the turn in all of the folders, finishes what a dead server
// left unfinished in them, and marks the moment: what the user changes from
// now on wins over the run.
//
// waiting, if it is not nil, is called once with a holder when the turn is not
// free. When ctx ends first, the error is ctx's cause, wrapped with the holder.
func (s *Store) Begin(ctx context.Context, run Run, waiting func(Holder), folders ...Folder) (*Turn, error) {
	return nil, errors.ErrUnsupported
}

// Handle returns the open handle of folder i of Begin, which stays the same
// folder when its name comes to mean another. The Turn owns it.
func (t *Turn) Handle(i int) *os.File { return nil }

// Path returns the path of folder i with links resolved.
func (t *Turn) Path(i int) string { return "" }

// CopyLimits bound a copy. Zero means 64 MiB and 5,000 names.
type CopyLimits struct {
	Bytes int64 // of files that the file system did not clone
	Names int
	// CloneOnly fails with ErrNoClone at the first file that cannot be cloned.
	CloneOnly bool
}

// Errors of [Turn.Copy], for which the caller chooses another layer.
var (
	ErrTooLarge = errors.New("the folder is too large to be copied")
	ErrNoClone  = errors.New("the file system does not clone files")
)

// A Copy is what a copy of a folder held when it was made.
type Copy struct{}

// Copy copies folder i into the empty folder to, with clones where the file
// system has them: regular files, links, folders, modes, times, attributes and
// holes. Other things are left out. On failure, what was copied stays in to for
// the caller to remove.
func (t *Turn) Copy(ctx context.Context, i int, to *os.File, limits CopyLimits) (*Copy, error) {
	return nil, errors.ErrUnsupported
}

// A Layer is where a run wrote instead of a folder. Of the two formats, the
// zero Copy is an overlay's upper folder, mounted with "userxattr" and without
// redirect_dir and metacopy.
type Layer struct {
	Folder int // which of Begin
	// Dir is the overlay's upper folder, or the changed copy. It may be in another
	// mount namespace: only the handle is used (on systems other than Linux, its
	// name). Finish may change modes in it to read it, and does not close it.
	Dir *os.File
	// Copy is what the copy held before; nil: Dir is an overlay's upper folder.
	Copy *Copy
}

// An Ending says how a run ended, and what the user allowed for it.
type Ending struct {
	Killed   string // why it did not end by itself: "the time limit"; empty: it did
	Review   bool   // hold every change
	GitWrite bool   // commits come back as git's data
}

// Finish makes a set of each layer that holds changes and applies what may be
// applied. Every process of the run must have ended. It returns the sets, also
// those that are wholly held or refused, in the order of the layers.
//
// An error means that for at least one layer nothing was applied and nothing is
// kept: its folder is as it was. The sets of other layers are returned beside
// it.
func (t *Turn) Finish(ctx context.Context, end Ending, layers ...Layer) ([]*Set, error) {
	return nil, errors.ErrUnsupported
}

// Close ends the turn. It may be called more than once.
func (t *Turn) Close() error { return nil }
