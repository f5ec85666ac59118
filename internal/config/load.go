package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/config/ownfile"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
	"github.com/packs-mcp/packs-mcp/internal/config/units"
)

// Options say where a configuration comes from.
type Options struct {
	// File is the configuration file; empty: what PACKS_MCP_CONFIG names, or
	// the usual place, see [places.Paths].
	File string
	// FileRequired makes a missing File an error. A file that PACKS_MCP_CONFIG
	// names is always required; the file in the usual place never is.
	FileRequired bool
	// Environ is the environment, as os.Environ gives it.
	Environ []string
	// Flags are the settings from the command line, by key: "log.level".
	Flags map[string]string
	// Packs are the folders of --packs flags. All of their packs are attached.
	Packs []string
	// Dir is what relative paths of flags and environment are relative to;
	// empty: the working folder.
	Dir string
	// GOOS is the operating system; empty: this one.
	GOOS string
}

// Load returns the configuration, or an [*problem.Error] with every problem. Any other
// error means that the places for files cannot be determined.
//
// A variable can set every key that holds one value, approval.channels and
// packs: PACKS_MCP_APPROVAL_WAIT is approval.wait, and PACKS_MCP_TOKEN is
// http.token. Channels are separated by commas, folders as in PATH. Rules,
// grants, approvers, roles and people's tokens can be set only in the file, and Load never looks
// for the file in the working folder, a project or a pack. Pack folders from all
// sources are combined: those from flags come first, then those from the
// environment, then those from the file. An empty variable counts as unset.
func Load(o Options) (*Config, error) {
	if o.GOOS == "" {
		o.GOOS = runtime.GOOS
	}
	if o.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("looking for the working folder: %w", err)
		}
		o.Dir = dir
	}
	env := places.Environment(o.Environ, o.GOOS)
	own, err := places.In(env, o.GOOS, o.Dir)
	if err != nil {
		return nil, err
	}
	l := &loader{
		cfg:    Default(),
		keys:   keys(),
		cwd:    places.Base{Dir: o.Dir, Home: own.Home, GOOS: o.GOOS},
		origin: map[string]string{},
	}
	l.cfg.Paths = own
	l.cfg.Context = map[string]string{}

	l.configFile(o, env["PACKS_MCP_CONFIG"])
	roots := l.cfg.Packs // from the file
	l.cfg.Packs = nil
	for _, dir := range o.Packs {
		l.addRoot("--packs", dir, FromFlag)
	}
	l.environment(env)
	l.cfg.Packs = append(l.cfg.Packs, roots...)
	for _, path := range slices.Sorted(maps.Keys(o.Flags)) {
		l.setText(flagName(path), path, o.Flags[path], true)
	}
	l.together()
	if len(l.problems) > 0 {
		return nil, &problem.Error{Problems: l.problems}
	}
	if l.cfg.Audit.Path == "" {
		l.cfg.Audit.Path = own.Audit
	}
	return l.cfg, nil
}

// A loader fills a configuration and collects problems.
type loader struct {
	cfg      *Config
	keys     []key
	cwd      places.Base       // for flags and environment
	origin   map[string]string // :: key → where it was set last
	problems []problem.Problem
}

func (l *loader) add(where, key, message string) {
	l.problems = append(l.problems, problem.Problem{Where: where, Key: key, Message: message})
}

func (l *loader) warn(format string, args ...any) {
	l.cfg.Warnings = append(l.cfg.Warnings, fmt.Sprintf(format, args...))
}

// configFile finds and reads the file.
func (l *loader) configFile(o Options, fromEnv string) {
	name, required := o.File, o.FileRequired
	switch {
	case name != "":
	case fromEnv != "":
		name, required = fromEnv, true
	default:
		name, required = l.cfg.Paths.Config, false
	}
	path, wrong := l.cwd.Resolve(name)
	if wrong != "" {
		l.add(name, "", wrong)
		return
	}
	data, wrong := ownfile.Read(path)
	if wrong != "" {
		if _, err := os.Stat(path); !required && os.IsNotExist(err) {
			return
		}
		l.add(name, "", wrong)
		return
	}
	l.cfg.File = path
	l.file(name, filepath.Dir(path), data)
	l.warnReadable(path)
}

// envName returns the variable for a key, flagName its flag.
func envName(path string) string {
	return "PACKS_MCP_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

func flagName(path string) string {
	switch path {
	case "http.addr":
		return "--http"
	case "http.public_url":
		return "--public-url"
	}
	return "--" + strings.NewReplacer(".", "-", "_", "-").Replace(path)
}

// environment applies our variables, in order of name.
func (l *loader) environment(env map[string]string) {
	byName := map[string]string{envName("packs"): "packs", "PACKS_MCP_TOKEN": "http.token"} // :: variable → key
	for _, k := range l.keys {
		byName[envName(k.path)] = k.path
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		if !strings.HasPrefix(name, "PACKS_MCP_") || value == "" {
			continue
		}
		path, known := byName[name]
		switch {
		case path == "packs":
			for _, dir := range splitPaths(l.cwd.GOOS, value) {
				l.addRoot(name, dir, FromEnv)
			}
		case known:
			l.setText(name, path, value, false)
		case slices.Contains([]string{"PACKS_MCP_HOME", "PACKS_MCP_CONFIG", "PACKS_MCP_REQUIRE"}, name):
		case name == envName(rulesKey), strings.HasPrefix(name, envName(rulesKey)+"_"):
			l.add(name, "", "rules are read from the configuration file only; write them there")
		case name == envName(approversKey), name == envName(useKey):
			l.add(name, "", "who may do what is read from the configuration file only; write it there")
		case name == envName(tokensKey):
			l.add(name, "", "tokens of people are read from the configuration file only; write them there")
		default:
			l.warn("unknown variable %s%s", problem.ShowKey(name), problem.DidYouMean(name, slices.Sorted(maps.Keys(byName)), nil))
		}
	}
}

// splitPaths is filepath.SplitList for a given operating system.
func splitPaths(goos, value string) []string {
	sep := ":"
	if goos == "windows" {
		sep = ";"
	}
	return slices.DeleteFunc(strings.Split(value, sep), func(s string) bool { return s == "" })
}

// addRoot adds a folder that a flag or the environment names.
func (l *loader) addRoot(where, dir string, from Source) {
	path, wrong := l.cwd.Resolve(dir)
	if wrong != "" {
		if from == FromFlag {
			wrong = "is " + problem.Show(dir) + "; " + wrong
		}
		l.add(where, "", wrong)
		return
	}
	l.cfg.Packs = append(l.cfg.Packs, Root{Path: path, Attach: Attach{All: true}, Trust: TrustUser, Source: from})
}

// setText sets a key from text. A message shows the text only if visible: a
// variable may hold a secret that was meant for another variable.
func (l *loader) setText(where, path, text string, visible bool) {
	i := slices.IndexFunc(l.keys, func(k key) bool { return k.path == path })
	if i < 0 {
		l.add(where, "", "unknown key "+problem.ShowKey(path)+problem.DidYouMean(path, paths(), nil))
		return
	}
	k := l.keys[i]
	l.origin[path] = where
	values := []string{text}
	if k.list != "" {
		values = strings.Split(text, k.list)
		if k.none && strings.TrimSpace(text) == "" {
			values = nil
		}
		k.clear(l.cfg)
	}
	for _, v := range values {
		if k.list != "" {
			v = strings.TrimSpace(v)
		}
		wrong := k.set(l.cfg, v, l.cwd)
		if wrong != "" && visible && !k.secret {
			wrong = "is " + problem.Show(v) + "; " + wrong
		}
		if wrong != "" {
			l.add(where, "", wrong)
		}
	}
}

// together checks that values fit together. Values that are wrong by themselves
// were not set, so it does not report them again.
func (l *loader) together() {
	c := l.cfg
	check := func(ok bool, small, smallText, large, largeText string) {
		if ok {
			return
		}
		more, less := "more than", "less than"
		if smallText == largeText {
			more, less = "not less than", "not more than"
		}
		where, key, message := l.origin[small], small, fmt.Sprintf("is %s, which is %s the %s of %s", smallText, more, largeText, large)
		if where == "" {
			where, key, message = l.origin[large], large, fmt.Sprintf("is %s, which is %s the %s of %s", largeText, less, smallText, small)
		}
		if !strings.Contains(where, ":") { // a flag or a variable already names the key
			key = ""
		}
		l.add(where, key, message)
	}
	sizes := func(small string, s int64, large string, b int64) {
		check(s <= b, small, units.SizeText(s), large, units.SizeText(b))
	}
	sizes("limits.frontmatter", c.Limits.Frontmatter, "limits.entry_doc", c.Limits.EntryDoc)
	sizes("limits.read_page", c.Limits.ReadPage, "limits.read_page_max", c.Limits.ReadPageMax)
	sizes("limits.output", c.Limits.Output, "limits.output_total", c.Limits.OutputTotal)
	sizes("limits.output_markdown", c.Limits.OutputMarkdown, "limits.output_total", c.Limits.OutputTotal)
	// Less than, not equal: an answer that comes after the wait is kept for the
	// retry.
	check(c.Approval.Wait < c.Approval.Pending, "approval.wait", units.DurationText(c.Approval.Wait), "approval.pending", units.DurationText(c.Approval.Pending))
	l.httpTogether()
	l.quotasTogether()
	l.containersTogether()
	check(c.Limits.Timeout <= c.Sandbox.TimeoutMax, "limits.timeout", units.DurationText(c.Limits.Timeout), "sandbox.timeout_max", units.DurationText(c.Sandbox.TimeoutMax))
}
