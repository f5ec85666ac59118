package plan

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// An Opening gives tools access to something of the user's own that they would not
// get otherwise. Only the user can make one, not a pack.
type Opening struct {
	// Pack and Tool are patterns, in the syntax of path.Match, for a pack's id and a
	// tool's declared name. "*" alone matches everything.
	Pack, Tool string
	// Kinds are "run" for declared tools and "exec" for commands that the model
	// writes itself, for which Tool does not count. Empty means run.
	Kinds []string

	Env   []string // names of variables that get the server's own value
	Read  []string // absolute files and folders
	Write []string // absolute folders
	Home  bool     // HOME is the user's own
	Git   bool     // commits that a run made are applied, as git's data

	Review bool // no change is applied before the user has seen it; holds for untrusted packs too
}

// covers reports whether o applies to a tool of a pack, or to the commands that the
// model writes for it.
func (o *Opening) covers(pack string, kind call.Kind, tool string) bool {
	named := slices.Contains(o.Kinds, string(kind)) || len(o.Kinds) == 0 && kind == call.KindRun
	return named && globs(o.Pack, pack) && (kind == call.KindExec || globs(o.Tool, tool))
}

// opens reports whether o gives a run anything.
func (o *Opening) opens() bool {
	return len(o.Env)+len(o.Read)+len(o.Write) > 0 || o.Home || o.Git
}

// globs reports whether name matches a pattern of an opening.
func globs(pattern, name string) bool {
	if pattern == "*" {
		return true
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// grant adds what the user's configuration opens to a run.
func (p *Planner) grant(m *permissions, pack *packs.Pack, kind call.Kind, tool string) {
	for _, o := range p.opts.Openings {
		if !o.covers(pack.ID, kind, tool) {
			continue
		}
		m.policy.Review = m.policy.Review || o.Review
		if !o.opens() {
			continue
		}
		if pack.Trust != packs.TrustUser && pack.Trust != packs.TrustBundled {
			// The author of the pack also chose its name.
			m.leaveOut("sandbox.grants", "do not apply to a pack that is not trusted")
			continue
		}
		for _, name := range o.Env {
			p.grantVariable(m, name)
		}
		for _, path := range o.Write {
			p.grantPath(m, pack, path, true)
		}
		for _, path := range o.Read {
			p.grantPath(m, pack, path, false)
		}
		m.policy.GitWrite = m.policy.GitWrite || o.Git
		switch {
		case o.Home && len(p.homes) > 0:
			m.granted.Home = p.homes[0]
		case o.Home:
			m.leaveOut("home", "is not known: HOME is not set")
		}
	}
	// A folder that may be changed may be read, whichever opening came first.
	m.policy.ReadOnly = slices.DeleteFunc(m.policy.ReadOnly, func(path string) bool {
		return slices.Contains(m.granted.Folders, path) && slices.Contains(m.changes, path)
	})
}

func (m *permissions) leaveOut(what, why string) {
	if missing := (call.Missing{What: what, Why: why}); !slices.Contains(m.granted.LeftOut, missing) {
		m.granted.LeftOut = append(m.granted.LeftOut, missing)
	}
}

func (p *Planner) grantVariable(m *permissions, name string) {
	has := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return sameVariable(n, name) })
	}
	if has(m.granted.Env) || has(m.granted.Unset) {
		return
	}
	value, ok := findVariable(p.opts.Environ, name)
	if !ok {
		m.granted.Unset = append(m.granted.Unset, name)
		return
	}
	m.granted.Env = append(m.granted.Env, name)
	m.env = append(m.env, name+"="+value)
}

// grantPath adds a file or folder, with links resolved as they are now. A person is
// shown where a link leads, and the run gets exactly that.
func (p *Planner) grantPath(m *permissions, pack *packs.Pack, path string, write bool) {
	resolved, err := filepath.EvalSymlinks(path)
	var info os.FileInfo
	if err == nil {
		info, err = os.Lstat(resolved)
	}
	if err != nil {
		why := "cannot be examined"
		if errors.Is(err, fs.ErrNotExist) {
			why = "does not exist"
		}
		m.leaveOut(path, why)
		return
	}
	if why := p.refuses(pack, resolved, info, write); why != "" {
		m.leaveOut(path, why)
		return
	}
	to := &m.policy.ReadOnly
	if write {
		to = &m.changes
	}
	if !slices.Contains(*to, resolved) {
		*to = append(*to, resolved)
	}
	if !slices.Contains(m.granted.Folders, resolved) {
		m.granted.Folders = append(m.granted.Folders, resolved)
	}
	link := paths.Link{Path: filepath.Clean(path), Target: resolved}
	if link.Path != resolved && !slices.Contains(m.policy.Links, link) {
		m.policy.Links = append(m.policy.Links, link)
	}
}

// refuses returns why the target of a grant is not given; empty if it is.
func (p *Planner) refuses(pack *packs.Pack, path string, info os.FileInfo, write bool) string {
	switch {
	case holdsHome(p.homes, path):
		return "leads to your whole home folder"
	case runtime.GOOS != "windows" && paths.Inside([]string{"/proc", "/dev"}, path):
		return "is in /proc or /dev"
	case write && !info.IsDir():
		return "is not a folder"
	case !info.IsDir() && !info.Mode().IsRegular():
		return "is neither a file nor a folder"
	case p.HoldsPrivate(path):
		return "holds files that only packs-mcp itself may read"
	case !write:
		return ""
	case within(path, pack.Dir):
		return "is in the pack, which runs may not change"
	case changes.InGit(path):
		return "is git's own data, which no folder grant covers; use git: write to apply commits to the project"
	case slices.ContainsFunc(append(slices.Clone(p.opts.Own), p.opts.AuditLog), func(own string) bool {
		return own != "" && (within(own, path) || within(path, own))
	}):
		return "is used by packs-mcp itself"
	}
	return ""
}
