package sandbox

import "github.com/packs-mcp/packs-mcp/internal/sandbox/changes"

// A LayerKind says how a run may change one of the user's folders without writing to
// it.
type LayerKind int

const (
	LayerReadOnly LayerKind = iota // not at all
	LayerOverlay                   // the run sees the folder itself; its writes go to memory
	LayerClone                     // it works on a copy that shares its blocks with the folder
	LayerCopy                      // it works on a copy
)

var layerNames = []string{"read-only", "overlay", "clone", "copy"}

// String returns "read-only", "overlay", "clone" or "copy".
func (k LayerKind) String() string { return enumString(layerNames, int(k), "LayerKind") }

// A Layer is one of the user's folders that a run may change, and how. Afterwards,
// the changes are a change set; see [Result.Changes].
type Layer struct {
	Folder string // absolute, without symbolic links
	Kind   LayerKind
	Reason string // for people: why Kind is no better; empty for [LayerOverlay]

	// Git says where git's files are below Folder, if Folder is the git folder of a
	// worktree or submodule elsewhere. All of Folder is protected then; with
	// [Policy.GitWrite], commits are applied. It is zero for any other folder.
	Git changes.GitFolder

	// Commits says that [Policy.GitWrite] applies to the repository whose working tree
	// is Folder.
	Commits bool

	Looked Look // for a run that follows at once
}

// A Look is the state of a folder when its possible layers were determined. While
// that state is the same, the folder need not be examined again. The zero value
// matches no folder.
type Look struct {
	Dev, Ino uint64
	Changed  int64  // the folder itself, in nanoseconds
	Mounts   uint64 // how often the list of mounts had been read
}

// IsGit reports whether the folder is a git folder outside of its working tree.
func (l *Layer) IsGit() bool { return l.Git != changes.GitFolder{} }

// LayerFolders returns the folders of p's Layers.
func (p *Policy) LayerFolders() []string {
	dirs := make([]string, len(p.Layers))
	for i, l := range p.Layers {
		dirs[i] = l.Folder
	}
	return dirs
}
