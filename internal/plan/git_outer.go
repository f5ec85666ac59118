package plan

import (
	"bufio"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// maxGitLink is how much is read of a file that names a git folder.
const maxGitLink = 4 << 10

// outerGit returns the folder outside of dir that git needs there, and where its
// files are in it. If dir is a worktree, that is the common folder of its repository;
// if dir is a submodule, it is the module's folder. It is empty if .git is a folder,
// or does not exist.
//
// A project says where that is in its .git file, and could name any folder. It is
// accepted only if it is a git folder that names dir in turn, which only somebody
// with write access to it can arrange.
func outerGit(dir string) (outer string, git changes.GitFolder) {
	named, ok := gitLink(filepath.Join(dir, ".git"), "gitdir:")
	if !ok {
		return "", git
	}
	own, ok := folderAt(dir, named)
	if !ok {
		return "", git
	}
	if common := commonOf(own); common != "" && isGitFolder(common) && pointsBack(own, dir) {
		// commonOf has made sure that own is COMMON/worktrees/NAME.
		return common, changes.GitFolder{Dir: path.Join("worktrees", filepath.Base(own)), Common: "."}
	}
	if isGitFolder(own) && isModule(own) && worktreeOf(own) != "" {
		if back, ok := folderAt(own, worktreeOf(own)); ok && sameFolder(back, dir) {
			return own, changes.GitFolder{Dir: ".", Common: "."}
		}
	}
	return "", git
}

// commonOf returns the common folder of the repository to which a worktree's own
// folder, COMMON/worktrees/NAME, belongs; empty for any other folder.
func commonOf(own string) string {
	named, ok := gitLink(filepath.Join(own, "commondir"), "")
	if !ok || filepath.Base(filepath.Dir(own)) != "worktrees" {
		return ""
	}
	common, ok := folderAt(own, named)
	if !ok || !sameFolder(common, filepath.Dir(filepath.Dir(own))) {
		return ""
	}
	return common
}

// pointsBack reports whether a worktree's own folder names the .git file of dir.
func pointsBack(own, dir string) bool {
	named, ok := gitLink(filepath.Join(own, "gitdir"), "")
	if !ok {
		return false
	}
	if !filepath.IsAbs(named) {
		named = filepath.Join(own, named)
	}
	return filepath.Base(named) == ".git" && sameFolder(filepath.Dir(named), dir)
}

// isModule reports whether a git folder is in the modules folder of another one, or
// of a worktree.
func isModule(own string) bool {
	for at := own; filepath.Dir(at) != at; at = filepath.Dir(at) {
		if filepath.Base(at) != "modules" || at == own {
			continue
		}
		if outer := filepath.Dir(at); isGitFolder(outer) || commonOf(outer) != "" {
			return true
		}
	}
	return false
}

// isGitFolder reports whether dir has the files by which git recognizes a repository.
func isGitFolder(dir string) bool {
	head, err := os.Lstat(filepath.Join(dir, "HEAD"))
	if err != nil || !head.Mode().IsRegular() {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// worktreeOf returns core.worktree of a git folder's config; empty if there is none.
func worktreeOf(own string) string {
	f, err := openRegular(filepath.Join(own, "config"))
	if err != nil {
		return ""
	}
	defer f.Close()
	section, found := "", ""
	lines := bufio.NewScanner(io.LimitReader(f, 1<<20))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(strings.Trim(line, "[] \t"))
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && section == "core" && strings.EqualFold(strings.TrimSpace(key), "worktree") {
			found = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return found
}

// gitLink returns the path in a file of one line; ok is false for any other file.
func gitLink(file, prefix string) (path string, ok bool) {
	f, err := openRegular(file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxGitLink+1))
	text, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	text = strings.TrimSpace(text)
	if err != nil || !ok || len(data) > maxGitLink || text == "" || strings.ContainsAny(text, "\n\r\x00") {
		return "", false
	}
	return filepath.FromSlash(text), true
}

// openRegular opens a regular file. It never blocks on anything else.
func openRegular(file string) (*os.File, error) {
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	return os.Open(file)
}

// folderAt returns the folder, without links, to which a path relative to dir leads.
func folderAt(dir, path string) (string, bool) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(resolved)
	return resolved, err == nil && info.IsDir()
}
