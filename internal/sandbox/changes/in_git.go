package changes

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
)

// InGit reports whether a folder is a git folder or is in one, so that every name
// in it is git's: its path has no links, and need not say ".git" itself. A working
// tree that is kept in a bare repository is not.
func InGit(folder string) bool {
	tree := false // there is a working tree between folder and dir
	for dir, below := filepath.Clean(folder), ""; ; dir, below = filepath.Dir(dir), filepath.Base(dir) {
		if protect.IsDotGit(filepath.Base(dir)) {
			return true
		}
		if isGitFolder(dir) && (!tree || slices.Contains(gitNames(), protect.Fold(below))) {
			return true
		}
		if exists(filepath.Join(dir, ".git")) {
			tree = true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// gitNames are folders in a git folder in which no working tree is looked for.
func gitNames() []string {
	return []string{"hooks", "info", "logs", "modules", "objects", "refs", "worktrees"}
}

// isGitFolder reports whether git takes the folder for a repository, or for a
// worktree's part of one.
func isGitFolder(dir string) bool {
	has := func(name string) bool { return exists(filepath.Join(dir, name)) }
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
