package layer

import (
	"bufio"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// Bounds for reading git's settings.
const (
	maxGitConfig = 1 << 20
	maxIncludes  = 10
)

// Bounds of the search for repositories below the folders that are directly in the
// folder. It is made after each run that changed something.
const (
	maxSearched = 1_000 // folders in all
	maxSiblings = 100   // of one folder
)

// An aim is a path in the folder that something protected leads to. The file there is
// protected as well.
type aim struct {
	at  string // folded
	why string
}

// aimed returns why a path is protected as an aim, or "". It covers links that
// replace a folder above an aim, since they would put other files there.
func (c *classifier) aimed(at string, link bool) string {
	folded := foldPath(at)
	for _, a := range c.aims {
		if folded == a.at || strings.HasPrefix(folded, a.at+"/") || link && strings.HasPrefix(a.at, folded+"/") {
			return a.why
		}
	}
	return ""
}

// findAims collects the targets of the user's own links with protected names directly
// in the folder, and the files in it that git's settings name: hooks, included
// settings and programs.
func (c *classifier) findAims() {
	names, _ := c.folder.Dir.Names()
	for _, name := range names {
		m, err := c.folder.Dir.Lstat(name)
		if err != nil || !m.IsLink() || c.folder.Names.Reason(name) == "" && c.folder.Names.Above(name) == "" {
			continue
		}
		if target, err := c.folder.Dir.Readlink(name); err == nil {
			c.aim(c.folder.Path, target, "the link "+name+" leads to it")
		}
	}
	for top := c.folder.Path; ; top = filepath.Dir(top) {
		if dir, ok := gitAt(top); ok {
			c.repository(top, dir)
			break
		}
		if top == filepath.Dir(top) {
			break
		}
	}
	for _, below := range c.near(names) {
		top := filepath.Join(c.folder.Path, filepath.FromSlash(below))
		if dir, ok := gitAt(top); ok {
			c.repository(top, dir)
		}
	}
}

// near returns the folders that may hold a repository whose settings name what the
// ops change: the ops' own folders, those directly in the folder, whose names are
// given, and those found below within bounds, nearest first. A repository beyond
// these is missed: finding all would mean walking the whole folder after each run.
func (c *classifier) near(names []string) []string {
	dirs := map[string]bool{}
	var queue []string
	for _, name := range names {
		if m, err := c.folder.Dir.Lstat(name); err == nil && m.IsDir() {
			dirs[name] = true
			queue = append(queue, name)
		}
	}
	for searched := 0; len(queue) > 0 && searched < maxSearched; searched++ {
		dir := queue[0]
		queue = queue[1:]
		for _, below := range c.foldersIn(dir) {
			dirs[below] = true
			queue = append(queue, below)
		}
	}
	for i := range c.ops {
		for dir := path.Dir(c.ops[i].Path); dir != "." && !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// foldersIn returns the first folders in one of the user's folders, or none if that
// is a git folder.
func (c *classifier) foldersIn(dir string) []string {
	if protect.IsDotGit(path.Base(dir)) {
		return nil
	}
	d, err := c.folder.Dir.Walk(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	if m, err := d.Stat(); err != nil || m.Nlink == 2 {
		return nil // by its link count, it has no subfolders
	}
	names, _ := d.Names()
	var below []string
	for _, name := range names {
		if len(below) == maxSiblings {
			break
		}
		if m, err := d.Lstat(name); err == nil && m.IsDir() {
			below = append(below, path.Join(dir, name))
		}
	}
	return below
}

// repository adds the paths named by the settings of the repository in top and by the
// user's own.
func (c *classifier) repository(top, dir string) {
	files := append([]string{filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree")}, c.folder.GitConfig...)
	if common, ok := firstLine(filepath.Join(dir, "commondir"), ""); ok {
		files = append(files, filepath.Join(c.from(dir, common), "config"))
	}
	for _, file := range files {
		c.gitSettings(top, file, 0)
	}
}

// aim adds the target in the folder of a path relative to base, with and without
// links resolved.
func (c *classifier) aim(base, named, why string) {
	named = c.from(base, named)
	for _, p := range []string{named, paths.WithoutLinks(named)} {
		if rel, ok := paths.Below(c.folder.Path, p); ok && rel != "." {
			c.aims = append(c.aims, aim{foldPath(filepath.ToSlash(rel)), why})
		}
	}
}

// from makes a path absolute that is relative to base or, with "~/", to the user's
// home folder.
func (c *classifier) from(base, named string) string {
	if rest, ok := strings.CutPrefix(named, "~/"); ok && c.folder.Home != "" {
		return filepath.Join(c.folder.Home, rest)
	}
	return below(base, named)
}

// below makes a path absolute that is relative to base.
func below(base, named string) string {
	if filepath.IsAbs(named) {
		return filepath.Clean(named)
	}
	return filepath.Join(base, filepath.FromSlash(named))
}

// gitAt returns the git folder of the repository whose working tree is in top.
func gitAt(top string) (dir string, ok bool) {
	at := filepath.Join(top, ".git")
	if info, err := os.Stat(at); err == nil && info.IsDir() {
		return at, true
	}
	named, ok := firstLine(at, "gitdir:")
	return below(top, named), ok
}

// firstLine returns what follows the prefix in the first line of a small file.
func firstLine(file, prefix string) (string, bool) {
	data, err := readConfig(file)
	line, _, _ := strings.Cut(string(data), "\n")
	line, ok := strings.CutPrefix(line, prefix)
	line = strings.TrimSpace(line)
	return line, ok && err == nil && line != ""
}

// readConfig reads a regular file.
func readConfig(file string) ([]byte, error) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxGitConfig))
}

// gitSettings adds the paths that a file of git settings names. It does not know
// every key that names a program: each word with a slash that is a file's path
// counts. Conditions of includes count as met.
func (c *classifier) gitSettings(top, file string, depth int) {
	data, err := readConfig(file)
	if err != nil || depth > maxIncludes {
		return
	}
	section := ""
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(string(data), "\\\n", " ")))
	lines.Buffer(nil, maxGitConfig+1)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			if section, line, _ = strings.Cut(line[1:], "]"); section != "" {
				section = strings.ToLower(strings.Fields(section + " ")[0])
			}
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		c.gitSetting(top, file, section, strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value), depth)
	}
}

func (c *classifier) gitSetting(top, file, section, key, value string, depth int) {
	const why = "git's settings name it"
	whole := strings.Trim(value, `"`)
	switch section, _, _ = strings.Cut(section, "."); section {
	case "remote", "branch", "url", "user":
		return // they name repositories and people
	case "include", "includeif":
		if key == "path" && whole != "" {
			c.aim(filepath.Dir(file), whole, why)
			c.gitSettings(top, c.from(filepath.Dir(file), whole), depth+1)
		}
		return
	}
	switch {
	case key == "url" || whole == "":
		return
	case key == "hookspath" || key == "templatedir": // which need not exist yet
		c.aim(top, whole, why)
		return
	}
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\"'`\\;&|()<>!=", r) })
	for _, word := range append(words, whole) {
		if !strings.Contains(word, "/") {
			continue
		}
		if info, err := os.Stat(c.from(top, word)); err == nil && info.Mode().IsRegular() {
			c.aim(top, word, why)
		}
	}
}
