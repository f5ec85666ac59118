package program

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/shim"
)

// An installation collects what programs need outside the system's own folders.
type installation struct {
	home   []string // the user's, in both spellings; empty: not known
	system []string // systemDirs
	given  []string // the pack and the workspace, which a run can read anyway
	env    func(string) string

	needs []string
	links []paths.Link
	seen  []string
}

func newInstallation(o LookupOptions) *installation {
	return &installation{
		home:   paths.Spellings([]string{shim.Environ(o.Environ).Home()}),
		system: paths.SystemDirs(),
		given:  paths.Spellings(append([]string{o.PackDir}, o.Exclude...)),
		env:    shim.Environ(o.Environ).Get,
	}
}

// add adds what the program at the absolute path needs: for each place that its links
// lead to, the installation around it, or else only the file.
func (in *installation) add(path string) {
	if slices.Contains(in.seen, path) {
		return
	}
	in.seen = append(in.seen, path)
	stops, links := paths.Trail(path)
	for _, l := range links {
		if !in.shown(l.Path) && !slices.Contains(in.links, l) {
			in.links = append(in.links, l)
		}
	}
	for i, stop := range stops {
		if in.shown(stop) {
			continue
		}
		if i == len(stops)-1 {
			in.needs = append(in.needs, stop)
		}
		for _, dir := range in.around(stop) {
			in.grant(dir)
		}
	}
}

// grant adds a folder, unless it is more than an installation.
func (in *installation) grant(dir string) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil || in.shown(resolved) || slices.Contains(in.needs, resolved) || in.private(resolved) {
		return
	}
	in.needs = append(in.needs, resolved)
	if home, ok := venvHome(resolved); ok {
		in.addBase(home)
	}
}

// addBase adds the Python that a virtual environment names as its base. Only a file
// says so, so the folder must look like an installation.
func (in *installation) addBase(bin string) {
	prefix := filepath.Dir(bin)
	if lib, _ := filepath.Glob(filepath.Join(prefix, "lib", "python*")); len(lib) == 0 || !isBin(filepath.Base(bin)) {
		return
	}
	stops, links := paths.Trail(prefix)
	for _, l := range links {
		if !in.shown(l.Path) && !slices.Contains(in.links, l) {
			in.links = append(in.links, l)
		}
	}
	if len(stops) > 0 {
		in.grant(stops[len(stops)-1])
	}
}

// shown reports whether every run sees path anyway.
func (in *installation) shown(path string) bool {
	return paths.Inside(in.system, path) || paths.Inside(in.given, path)
}

// around returns the folders that belong to the program or link at path, recognized
// by their layout. Some may turn out to be private.
func (in *installation) around(path string) []string {
	dir := filepath.Dir(path)
	parent := filepath.Dir(dir)
	for _, home := range in.home {
		if dir == filepath.Join(home, ".local", "bin") {
			// pip installs here for the user; the rest of ~/.local belongs to others.
			return []string{dir, filepath.Join(home, ".local", "lib")}
		}
	}
	if filepath.Base(path) == "rustup" {
		root := in.env("RUSTUP_HOME")
		if root == "" && len(in.home) > 0 {
			root = filepath.Join(in.home[0], ".rustup")
		}
		if filepath.IsAbs(root) {
			return []string{filepath.Join(root, "toolchains"), filepath.Join(root, "settings.toml")}
		}
	}
	var dirs []string
	if isBin(filepath.Base(dir)) && looksInstalled(parent) {
		dirs = append(dirs, parent)
	}
	// The outermost of these has everything that belongs together: the libraries of a
	// package, the dependencies of a JavaScript program.
	for at := dir; ; at = filepath.Dir(at) {
		switch base := filepath.Base(at); {
		case base == "node_modules", runtime.GOOS == "darwin" && strings.HasSuffix(base, ".app"):
			dirs = append(dirs, at)
		case base == "Cellar" && file.IsDir(filepath.Join(filepath.Dir(at), "bin")):
			dirs = append(dirs, filepath.Dir(at))
		}
		if at == filepath.Dir(at) {
			return dirs
		}
	}
}

func isBin(name string) bool {
	return slices.Contains([]string{"bin", "sbin", "libexec", "shims"}, name) ||
		runtime.GOOS == "windows" && strings.EqualFold(name, "scripts")
}

// looksInstalled reports whether dir has the usual folders of an installation and is
// no working copy, which might hold secrets. A checkout with shims is a version
// manager's, and counts as installed.
func looksInstalled(dir string) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			_, err := os.Lstat(filepath.Join(dir, name))
			return err == nil
		})
	}
	if has(".git", ".hg", ".svn", ".jj") && !(has("shims") && has("versions")) {
		return false
	}
	return has("lib", "lib64", "Lib", "libexec", "share", "include", "Cellar", "pyvenv.cfg", "conda-meta", "specifications")
}

// private reports whether dir is, or contains, something that does not belong to a
// program. If the home folder is not known, it returns true for every folder.
func (in *installation) private(dir string) bool {
	above := filepath.Dir(dir)
	switch {
	case len(in.home) == 0:
		return true
	case above == dir || filepath.Dir(above) == above && runtime.GOOS != "windows":
		return true // the root or a folder directly in it
	case slices.Contains([]string{"/home", "/Users", "/var/home", "/export/home"}, above):
		return true // somebody's home
	}
	for _, home := range in.home {
		if paths.Inside([]string{dir}, home) {
			return true
		}
		for _, name := range sharedNames() {
			if dir == filepath.Join(home, filepath.FromSlash(name)) {
				return true
			}
		}
		// Programs may be in a folder of settings; only a folder below that is theirs.
		rel, ok := paths.Below(home, dir)
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if slices.Contains(secretNames(), first) && !(first == ".config" && filepath.Base(dir) == "node_modules") {
			return true
		}
	}
	return slices.ContainsFunc(secretNames(), func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// sharedNames are folders of a home that belong to more than one program, or
// to the user.
func sharedNames() []string {
	return []string{
		".cache", ".cargo", ".local", ".local/share", ".local/state", ".npm", ".rustup", ".var", "go",
		"AppData", "AppData/Local", "AppData/Roaming", "Applications", "Desktop", "Documents", "Downloads", "Library",
		"Library/Application Support", "code", "dev", "projects", "repos", "src", "work", "workspace",
	}
}

// secretNames are names of folders and files, first of all in a home, that hold
// keys, tokens and settings.
func secretNames() []string {
	return []string{
		".aws", ".azure", ".bash_history", ".claude", ".claude.json", ".codex", ".config", ".copilot", ".cursor", ".docker",
		".env", ".envrc", ".gemini", ".git-credentials", ".gitconfig", ".gnupg", ".kube", ".mozilla", ".netrc", ".npmrc",
		".password-store", ".pgpass", ".pki", ".pypirc", ".ssh", ".terraform.d", ".thunderbird", ".vault-token",
		".zsh_history", "credentials", "credentials.toml",
	}
}

// LooksSecret reports whether a path has, anywhere in it, a usual name of files or
// folders with keys, tokens or passwords. ".config" alone is no such name: it holds
// settings of all kinds.
func LooksSecret(path string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(name string) bool {
		return name != ".config" && slices.Contains(secretNames(), name)
	})
}

// found returns what was collected, without paths that are inside others.
func (in *installation) found() (needs []string, links []paths.Link) {
	for _, path := range in.needs {
		others := slices.DeleteFunc(slices.Clone(in.needs), func(other string) bool { return other == path })
		if !paths.Inside(others, path) && !slices.Contains(needs, path) {
			needs = append(needs, path)
		}
	}
	for _, l := range in.links {
		if !paths.Inside(needs, l.Path) {
			links = append(links, l)
		}
	}
	slices.Sort(needs)
	slices.SortFunc(links, func(a, b paths.Link) int { return strings.Compare(a.Path, b.Path) })
	return needs, links
}

// venvHome returns the folder of the Python from which the virtual environment at dir
// was made, if dir is one.
func venvHome(dir string) (string, bool) {
	text, err := file.Text(filepath.Join(dir, "pyvenv.cfg"))
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		if home := strings.TrimSpace(value); ok && strings.TrimSpace(key) == "home" && filepath.IsAbs(home) {
			return filepath.Clean(home), true
		}
	}
	return "", false
}
