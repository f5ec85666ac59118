package config

import (
	"errors"
	slashpath "path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// An Opening gives tools access to something of the user's that they would not get
// otherwise. Their calls still need approval.
type Opening struct {
	Pack string // pattern of pack ids, as in path.Match; "*" alone is every pack
	Tool string // pattern of tools' declared names; "*" alone is every tool
	// Kinds are "run" for declared tools and "exec" for commands that the model
	// writes itself, which have no Tool. Empty means run.
	Kinds []string

	Env   []string // names of variables passed on with the server's value
	Read  []string // absolute files and folders
	Write []string // absolute folders
	Home  bool     // HOME is the user's own folder, where only what is granted is visible
	Git   bool     // bring back the commits that a run made, as git data

	Review bool // apply no change until the user has seen it
}

// everything is the pattern that also matches slashes.
const everything = "*"

// What a pattern has to be.
const (
	wantPacks = `a pack's id or a pattern of ids, such as acme/deploy, "acme/*" or "*"`
	wantTools = `a tool's name, a pack and a name such as acme/deploy/open_ticket, or a pattern of these`
)

// openings reads the list sandbox.grants.
func (f *fileReader) openings(v *yaml.Node, path string) {
	f.cfg.Sandbox.Grants = append(f.cfg.Sandbox.Grants, mappings(f, v, path, "{pack: acme/deploy, env: [GITHUB_TOKEN]}", f.opening)...)
}

func (f *fileReader) opening(item *yaml.Node, path string) Opening {
	known := []string{"pack", "kind", "tool", "env", "read", "write", "home", "git", "review"}
	g := Opening{Tool: everything}
	named, before := false, len(f.problems)
	var tool *yaml.Node
	f.Mapping(item, path, func(k, v *yaml.Node, path string) {
		switch node.Value(k).Value {
		case "pack":
			named = true
			f.pattern(v, path, wantPacks, &g.Pack)
		case "tool":
			tool = v
			f.pattern(v, path, wantTools, &g.Tool)
		case "kind":
			f.grantedKinds(v, path, &g.Kinds)
		case "env":
			f.Words(v, path, &g.Env, f.grantedEnv)
		case "read":
			f.Words(v, path, &g.Read, func(s string) (string, string) { return f.grantedPath(s, false) })
		case "write":
			f.Words(v, path, &g.Write, func(s string) (string, string) { return f.grantedPath(s, true) })
		case "home":
			g.Home = f.Bool(v, path)
		case "git":
			if s, ok := f.Text(v, path); ok && s != "write" {
				f.Problem(node.At(v), path, "is "+problem.Show(s)+"; want write, or leave it out")
			} else {
				g.Git = ok
			}
		case "review":
			g.Review = f.reviewAll(v, path)
		default:
			f.Problem(node.At(k), path, "unknown key"+problem.DidYouMean(node.Value(k).Value, known, nil))
		}
	})
	pack, _ := rules.SplitTool(g.Tool)
	old, _ := errors.AsType[*rules.Error](rules.CheckTool(g.Tool, g.Pack, "kind: exec instead of tool"))
	switch {
	case tool != nil && old != nil:
		f.Problem(node.At(tool), path+".tool", old.Problem)
	case len(f.problems) > before && named:
	case pack != "" && named:
		f.Problem(node.At(tool), path+".tool", "is "+problem.Show(g.Tool)+", which names the pack too; remove pack, or the part of tool before the last slash")
	case tool != nil && slices.Contains(g.Kinds, "exec"):
		f.Problem(node.At(tool), path+".tool", "is for declared tools, and a command of the model's own is none; remove it, or make two grants")
	case !named && pack == "":
		f.Problem(node.At(item), path, `has no pack; add pack: ID, or pack: "*" for every pack`)
	case len(f.problems) == before && len(g.Env)+len(g.Read)+len(g.Write) == 0 && !g.Home && !g.Git && !g.Review:
		f.Problem(node.At(item), path, "grants nothing; add env, read, write, home: true, git: write or review: all, or remove it")
	}
	if pack != "" {
		g.Pack, g.Tool = rules.SplitTool(g.Tool)
	}
	return g
}

// reviewAll reads the value of review, which can only be one word.
func (f *fileReader) reviewAll(v *yaml.Node, path string) bool {
	s, ok := f.Text(v, path)
	if ok && s != "all" {
		f.Problem(node.At(v), path, "is "+problem.Show(s)+"; want all, or leave it out")
	}
	return ok && s == "all"
}

// grantedKinds reads what a grant covers: declared tools, commands that the
// model writes itself, or both.
func (f *fileReader) grantedKinds(v *yaml.Node, path string, to *[]string) {
	check := func(s string) (string, string) { return s, checkWord(s, []string{"run", "exec"}) }
	if node.Value(v).Kind == yaml.SequenceNode {
		f.Words(v, path, to, check)
		if len(node.Value(v).Content) == 0 {
			f.Problem(node.At(v), path, "is an empty list; name at least one, or remove it")
		}
		return
	}
	if s, ok := f.Text(v, path); ok {
		if _, wrong := check(s); wrong != "" {
			f.Problem(node.At(v), path, "is "+problem.Show(s)+"; "+wrong)
		}
		*to = []string{s}
	}
}

// pattern stores a valid path.Match pattern.
func (f *fileReader) pattern(v *yaml.Node, name, want string, to *string) {
	s, ok := f.Text(v, name)
	if !ok {
		return
	}
	if _, err := slashpath.Match(s, ""); err != nil || strings.TrimSpace(s) == "" || strings.ContainsRune(s, 0) {
		f.Problem(node.At(v), name, "is "+problem.Show(s)+"; want "+want)
		return
	}
	*to = s
}

const envChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// isEnvName reports whether programs and shells can use s as the name of a
// variable.
func isEnvName(s string) bool {
	const most = 128
	return s != "" && len(s) <= most && (s[0] < '0' || s[0] > '9') && strings.Trim(s, envChars) == ""
}

// grantedEnv checks the name of a variable. Names that a pack may not set are
// allowed here, since the user chose them. Patterns are not, since nobody knows
// what they match.
func (f *fileReader) grantedEnv(s string) (name, wrong string) {
	upper := strings.ToUpper(s)
	switch {
	case !isEnvName(s):
		return "", "want the name of one variable, such as GITHUB_TOKEN; its value is the one that this program was started with"
	case slices.Contains([]string{"HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"}, upper):
		return "", "write home: true instead"
	case slices.Contains([]string{"PATH", "TMPDIR", "TMP", "TEMP"}, upper),
		strings.HasPrefix(upper, "PACKS_"), strings.HasPrefix(upper, "GIBBERISH_"):
		return "", "every program gets its own: remove it"
	}
	return s, ""
}

// grantedPath checks a file or folder. It refuses one so broad that the sandbox
// would confine nothing.
func (f *fileReader) grantedPath(s string, write bool) (string, string) {
	if !strings.HasPrefix(s, "~") && !places.IsAbs(f.base.GOOS, s) && strings.TrimSpace(s) != "" {
		return "", "want an absolute path, or one that begins with ~/"
	}
	p, wrong := f.base.Resolve(s)
	if wrong != "" {
		return "", wrong
	}
	switch {
	case f.base.Within(f.base.Home, p):
		return "", "that holds your whole home folder, with keys and passwords: name what the tool needs in it"
	case f.base.IsRoot(p):
		return "", "that is the whole file system: name what the tool needs in it"
	case f.base.GOOS != "windows" && (f.base.Within(p, "/proc") || f.base.Within(p, "/dev")):
		return "", "every program gets its own /proc and /dev: remove it"
	}
	own := f.cfg.Paths
	holds := func(ours string) bool { return ours != "" && (f.base.Within(ours, p) || f.base.Within(p, ours)) }
	if !write {
		for _, ours := range []string{own.State, own.Run} {
			if holds(ours) {
				return "", "a program that can read it could approve calls with the keys in " + problem.Show(ours) + ": name another file or folder"
			}
		}
		return p, ""
	}
	for _, ours := range []string{f.cfg.File, own.Config, own.State, own.Packs, own.Audit, own.Run, own.Copies, own.Caches, own.Index} {
		if holds(ours) {
			return "", "a program that can write there could change what packs-mcp does, through " + problem.Show(ours) + ": name another folder"
		}
	}
	return p, ""
}
