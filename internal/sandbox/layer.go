package sandbox

import "github.com/packs-mcp/packs-mcp/internal/sandbox/changes"

// A LayerKind says how a run may change a folder of the user's without writing
// to it.
type LayerKind int

const (
	LayerReadOnly LayerKind = iota // not at all
	LayerOverlay                   // the folder itself is seen, what is written goes elsewhere, in memory
	LayerClone                     // it works on a copy that shares its blocks with the folder
	LayerCopy                      // it works on a copy
)

var layerNames = []string{"read-only", "overlay", "clone", "copy"}

// String returns "read-only", "overlay", "clone" or "copy".
func (k LayerKind) String() string { return enumString(layerNames, int(k), "LayerKind") }

// A Layer is a folder of the user's that a run may change, and how. What the run
// changed is a change set afterwards; see [Result.Changes].
type Layer struct {
	Folder string // absolute, without symbolic links
	Kind   LayerKind
	Reason string // for people: why it is no better Kind; empty for [LayerOverlay]

	// Git says where git's files are below Folder when it is the git folder of a
	// worktree or a submodule that is elsewhere. All of it is protected; with
	// [Policy.GitWrite], commits are applied. Zero: it is any other folder.
	Git changes.GitFolder

	// Commits says that [Policy.GitWrite] holds for the repository whose working tree
	// Folder is. It does not hold for others that a run may change.
	Commits bool

	Looked Look // for a run that follows at once
}

// A Look is what a folder was like when it was found out what layer it can have.
// The zero value is none that any folder has. A folder that is as it was need not be
// looked into again.
type Look struct {
	Dev, Ino uint64
	Changed  int64  // the folder itself, in nanoseconds
	Mounts   uint64 // how often the list of mounts had been read
}

// IsGit reports whether the folder is a git folder outside of its working tree.
func (l *Layer) IsGit() bool { return l.Git != changes.GitFolder{} }

// LayerFolders are the folders of p's Layers.
func (p *Policy) LayerFolders() []string {
	dirs := make([]string, len(p.Layers))
	for i, l := range p.Layers {
		dirs[i] = l.Folder
	}
	return dirs
}
