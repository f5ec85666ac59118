package changes

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
)

// InGit reports whether a folder is a git folder or inside one, so that all its files
// belong to git. Its path must have no links, and need not contain ".git". A working
// tree inside a bare repository does not count.
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

// gitNames returns folders of a git folder that cannot hold a working tree.
func gitNames() []string {
	return []string{"hooks", "info", "logs", "modules", "objects", "refs", "worktrees"}
}

// isGitFolder reports whether git would accept the folder as a repository, or as a
// worktree's part of one.
func isGitFolder(dir string) bool {
	has := func(name string) bool { return exists(filepath.Join(dir, name)) }
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
