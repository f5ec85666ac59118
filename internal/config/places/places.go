// Package places says where files are if nobody configured it: those of this program, and
// the packs of others, on each operating system. It makes none and does not look whether
// they are there.
package places

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	slashpath "path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/config/problem"
)

// Paths are the default places for files, unless the configuration names others.
// All are absolute. Nothing is created.
type Paths struct {
	Home       string // the user's home folder; "" if unknown
	Config     string // config.yaml
	Packs      string // the user's own packs
	Sources    string // packs that were added from elsewhere; their lock file is beside it
	State      string // attached packs and grants
	Workspaces string // one folder for each chat
	Audit      string // audit.jsonl
	Run        string // announcements and other files of this server
	Copies     string // private copies of packs; can be recreated
	Caches     string // what tools keep between runs; can be recreated
	Index      string // what was read from packs; can be recreated
	// Runs are the folders that a server of this user may have for Run, Run first.
	// Its client may have given it another environment.
	Runs []string
	// Others are folders of this user's other servers that hold secrets: the state and
	// run folders that they have without PACKS_MCP_HOME. This server does not use them, and
	// must not let a run read them.
	Others []string
}

// A Base is the folder that relative paths are relative to, with the home
// folder.
type Base struct {
	Dir  string // absolute
	Home string // "" if unknown
	GOOS string
}

// A person is what the system knows about the user without any variables.
type person struct {
	home    string // "" if unknown
	runtime string // the folder that XDG_RUNTIME_DIR usually names; "" if there is none
}

// personOf returns what this system knows about the user of this process. It
// knows nothing for another operating system.
func personOf(goos string) person {
	u, err := user.Current()
	if goos != runtime.GOOS || err != nil {
		return person{}
	}
	var p person
	// Accounts of services often have a folder that does not exist.
	if info, err := os.Stat(u.HomeDir); err == nil && info.IsDir() && filepath.IsAbs(u.HomeDir) && filepath.Dir(u.HomeDir) != u.HomeDir {
		p.home = u.HomeDir
	}
	if goos == "linux" {
		p.runtime = join(goos, "/run/user", strconv.Itoa(os.Geteuid()))
	}
	return p
}

// WithHome returns environ with the variable of the home folder. Where a client
// passes none, it is the folder that the system knows.
func WithHome(environ []string, goos string) []string {
	if IsAbs(goos, Environment(environ, goos)[HomeName(goos)]) {
		return environ
	}
	home := personOf(goos).home
	if home == "" {
		return environ
	}
	return append(slices.Clip(environ), HomeName(goos)+"="+home)
}

// Resolve returns the places for an environment, as os.Environ gives it,
// and an operating system, as runtime.GOOS names it.
//
// PACKS_MCP_HOME puts everything into one folder. Otherwise Linux and similar
// systems follow the XDG base directories, and macOS and Windows their own
// conventions.
func Resolve(environ []string, goos string) (Paths, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Paths{}, fmt.Errorf("looking for the working folder: %w", err)
	}
	return In(Environment(environ, goos), goos, dir)
}

// In returns the places for an environment; paths in it are relative to dir.
func In(env map[string]string, goos, dir string) (Paths, error) {
	return resolvePaths(env, goos, dir, personOf(goos))
}

func resolvePaths(env map[string]string, goos, dir string, who person) (Paths, error) {
	home := env[HomeName(goos)]
	if !IsAbs(goos, home) {
		home = ""
	}
	p := Paths{Home: home}
	if own := env["PACKS_MCP_HOME"]; own != "" {
		root, wrong := Base{Dir: dir, Home: home, GOOS: goos}.Resolve(own)
		if wrong != "" {
			return Paths{}, &problem.Error{Problems: []problem.Problem{{Where: "PACKS_MCP_HOME", Message: wrong}}}
		}
		p.State = join(goos, root, "state")
		p.Run = join(goos, root, "run")
		p.fill(goos, root, root, root, root)
		// It keeps a server apart from the user's others.
		p.Runs = []string{p.Run}
		p.Others = otherFolders(env, goos, dir, who)
		return p, nil
	}

	// The specification of the XDG variables: "All paths must be absolute. If a
	// relative path is encountered, it should be considered invalid and
	// ignored." The Windows variables are treated the same way.
	from := func(name string, inHome ...string) (string, error) {
		if v := env[name]; IsAbs(goos, v) {
			return v, nil
		}
		if home == "" {
			return "", fmt.Errorf("the home folder cannot be found: set PACKS_MCP_HOME, or %s", HomeName(goos))
		}
		return join(goos, append([]string{home}, inHome...)...), nil
	}
	const name = "packs-mcp"
	var config, data, state, cache string
	var err error
	switch goos {
	case "windows":
		if config, err = from("APPDATA", "AppData", "Roaming"); err == nil {
			data, err = from("LOCALAPPDATA", "AppData", "Local")
		}
		data = join(goos, data, name)
		state = data
		cache = data
		p.State = join(goos, state, "state")
		p.Run = join(goos, state, "run")
	case "darwin":
		if config, err = from("", "Library", "Application Support"); err == nil {
			cache, err = from("", "Library", "Caches")
		}
		cache = join(goos, cache, name)
		data = join(goos, config, name)
		state = data
		p.State = join(goos, state, "state")
		p.Run = join(goos, state, "run")
	default:
		if config, err = from("XDG_CONFIG_HOME", ".config"); err == nil {
			data, err = from("XDG_DATA_HOME", ".local", "share")
		}
		if err == nil {
			state, err = from("XDG_STATE_HOME", ".local", "state")
		}
		if err == nil {
			cache, err = from("XDG_CACHE_HOME", ".cache")
		}
		data, state, cache = join(goos, data, name), join(goos, state, name), join(goos, cache, name)
		p.State = state
		p.Run = join(goos, state, "run")
		if run := env["XDG_RUNTIME_DIR"]; IsAbs(goos, run) {
			p.Run = join(goos, run, name)
		}
	}
	if err != nil {
		return Paths{}, err
	}
	p.fill(goos, join(goos, config, name), data, state, cache)
	p.Runs = runFolders(p.Run, env, goos, who)
	return p, nil
}

// fill sets the places whose names are the same everywhere, below these folders.
func (p *Paths) fill(goos, config, data, state, cache string) {
	p.Config = join(goos, config, "config.yaml")
	p.Packs = join(goos, data, "packs")
	p.Sources = join(goos, data, "sources")
	p.Workspaces = join(goos, data, "workspaces")
	p.Audit = join(goos, state, "audit.jsonl")
	p.Copies = join(goos, cache, copies)
	p.Caches = join(goos, cache, caches)
	p.Index = join(goos, cache, index)
}

// otherFolders returns the state and run folders of the user's servers without
// PACKS_MCP_HOME. It cannot know another PACKS_MCP_HOME that only a server was given.
func otherFolders(env map[string]string, goos, dir string, who person) []string {
	all := runFolders("", env, goos, who)[1:]
	for _, home := range []string{env[HomeName(goos)], who.home} {
		with := maps.Clone(env)
		delete(with, "PACKS_MCP_HOME")
		with[HomeName(goos)] = home
		// An error means that there is no such server: it has no home folder.
		if p, err := resolvePaths(with, goos, dir, who); err == nil && !slices.Contains(all, p.State) {
			all = append(all, p.State)
		}
	}
	return all
}

// runFolders returns own and the other run folders that a server of this user has
// with more or fewer variables than env. It cannot know values that only the
// server was given.
func runFolders(own string, env map[string]string, goos string, who person) []string {
	all := []string{own}
	add := func(base string, in ...string) {
		if !IsAbs(goos, base) {
			return
		}
		if dir := join(goos, append([]string{base}, in...)...); !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	homes := []string{env[HomeName(goos)], who.home}
	switch goos {
	case "windows":
		add(env["LOCALAPPDATA"], "packs-mcp", "run")
		for _, home := range homes {
			add(home, "AppData", "Local", "packs-mcp", "run")
		}
	case "darwin":
		for _, home := range homes {
			add(home, "Library", "Application Support", "packs-mcp", "run")
		}
	default:
		add(env["XDG_RUNTIME_DIR"], "packs-mcp")
		add(who.runtime, "packs-mcp")
		add(env["XDG_STATE_HOME"], "packs-mcp", "run")
		for _, home := range homes {
			add(home, ".local", "state", "packs-mcp", "run")
		}
	}
	return all
}

// The folders whose content can be recreated.
const (
	copies = "copies"
	caches = "caches"
	index  = "index"
)

// HomeName returns the name of the variable with the home folder.
func HomeName(goos string) string {
	if goos == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// Environment turns "NAME=value" pairs into a map. If a name occurs twice, the
// last value counts. On Windows names are case-insensitive.
func Environment(environ []string, goos string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			continue
		}
		if goos == "windows" {
			name = strings.ToUpper(name)
		}
		env[name] = value
	}
	return env
}

// WantPath says what is wrong with an empty path.
const WantPath = "want a path"

// Resolve turns text that a person wrote into an absolute path, or says why it
// cannot.
func (p Base) Resolve(text string) (absolute, wrong string) {
	rest, tilde := strings.CutPrefix(text, "~")
	switch {
	case strings.TrimSpace(text) == "":
		return "", WantPath
	case strings.ContainsRune(text, 0):
		return "", "a path has no zero bytes"
	case tilde && rest != "" && rest[0] != '/' && (p.GOOS != "windows" || rest[0] != '\\'):
		return "", "only ~ and ~/ are replaced by a home folder; write the path in full, or ./~… for that very name"
	case tilde && p.Home == "":
		return "", "the home folder cannot be found: write the path in full, or set " + HomeName(p.GOOS)
	case tilde:
		return join(p.GOOS, p.Home, rest), ""
	case IsAbs(p.GOOS, text):
		return join(p.GOOS, text), ""
	}
	return join(p.GOOS, p.Dir, text), ""
}

// IsAbs and join follow the rules of the given system, as far as these paths
// need, so that they can be tested anywhere.
func IsAbs(goos, path string) bool {
	if goos != "windows" {
		return strings.HasPrefix(path, "/")
	}
	path = strings.ReplaceAll(path, `\`, "/")
	return strings.HasPrefix(path, "//") || len(path) > 2 && path[1] == ':' && path[2] == '/'
}

func join(goos string, parts ...string) string {
	if goos == "windows" && filepath.Separator != '\\' {
		return strings.ReplaceAll(strings.Join(parts, `\`), "/", `\`)
	}
	return filepath.Join(parts...)
}

// Within reports whether path is dir or below it, comparing the spelling only.
func (p Base) Within(path, dir string) bool {
	path, dir = p.comparable(path), p.comparable(dir)
	return path != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
}

// IsRoot reports whether path is the top of a file system.
func (p Base) IsRoot(path string) bool {
	path = p.comparable(path)
	return path == "/" || p.GOOS == "windows" && len(strings.Trim(path, "/")) == len("c:")
}

// comparable returns an absolute path in the form in which paths are compared.
func (p Base) comparable(text string) string {
	if text == "" {
		return ""
	}
	if p.GOOS == "windows" {
		text = strings.ToLower(strings.ReplaceAll(text, `\`, "/"))
	}
	if p.GOOS == "darwin" {
		text = strings.ToLower(text) // its usual file system ignores letter case
	}
	return slashpath.Clean(text)
}
