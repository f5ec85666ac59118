package server

import (
	"cmp"
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// permissions are what one run may touch.
type permissions struct {
	policy  sandbox.Policy
	changes []string // folders of the user's that the run may change, in layers
	project string   // the project's folder, when policy has it or a part of it
	granted gate.Granted
	env     []string // granted variables as K=V
}

// permissions finds out what a run may touch: its pack, the workspace, the
// folder it runs in, which it may change unless it says that it only reads, and
// what the user grants it. What of that is the user's is changed in layers.
func (s *Server) permissions(ctx context.Context, c *call, pack *packs.Pack, kind gate.Kind, tool, dir string, p tools.Policy) (*permissions, error) {
	if holdsHome(s.homes, pack.Dir) {
		return nil, failf(codePathDenied, "Tell the user to move the pack into a folder of its own.",
			"the folder of pack %q holds the user's whole home folder, so no program may read it", pack.ID)
	}
	for what, folder := range map[string]string{"folder": dir, "pack's folder": pack.Dir} {
		if s.holdsPrivate(folder) {
			return nil, failf(codePathDenied, "Tell the user to set PACKS_MCP_HOME, XDG_STATE_HOME or XDG_RUNTIME_DIR to a folder outside of it, or to keep the configuration with its tokens elsewhere.",
				"the %s %q holds keys or tokens of packs-mcp itself, so no program may read it", what, folder)
		}
	}
	limits := s.limits.Run
	if p.Timeout > 0 {
		limits.Timeout = p.Timeout
	}
	limits.Timeout = min(limits.Timeout, s.limits.TimeoutMax)
	limits.CPU = cmp.Or(s.cpu, limits.Timeout)
	m := &permissions{policy: sandbox.Policy{ReadOnly: []string{pack.Dir}, Limits: limits}}
	if c.in().ownFolder {
		m.policy.Writable = []string{c.in().workspace} // made for this chat, and nobody else's
		m.policy.Private = m.policy.Writable
	} else {
		m.changes = []string{c.in().workspace}
	}
	// An unknown word is no network, the zero value.
	m.policy.Network, _ = sandbox.ParseNetwork(string(p.Network))

	elsewhere := !within(dir, pack.Dir) && !within(dir, c.in().workspace)
	if elsewhere {
		m.project = s.opts.Project
		// A tool's own placeholders may choose the folder.
		if p.ReadOnly {
			m.policy.ReadOnly = append(m.policy.ReadOnly, dir)
		} else {
			m.changes = append(m.changes, dir)
		}
	}
	m.policy.Review = p.Review
	s.grant(m, pack, kind, tool)
	m.policy.Layers = s.opts.Gate.Layers(ctx, m.changes)
	for i := range m.policy.Layers {
		l := &m.policy.Layers[i]
		// A granted folder is another repository's, or has some in it.
		l.Commits = m.policy.GitWrite && slices.Contains([]string{filepath.Clean(dir), filepath.Clean(c.in().workspace)}, l.Folder)
		if m.policy.GitWrite && elsewhere && !p.ReadOnly && l.Folder != filepath.Clean(dir) && within(dir, l.Folder) && isGitFolder(filepath.Join(dir, ".git")) {
			m.leaveOut("git: write", "does not hold for "+safetext.Quote(dir)+": it is in a folder that is granted as a whole, so its commits wait for you")
		}
	}
	if elsewhere {
		s.outerGit(ctx, m, dir, p.ReadOnly)
	}
	return m, nil
}

// outerGit adds the folder outside of a worktree or a submodule that git needs. It is
// read-only unless commits may come back and the folder can be seen at its own
// path while it is changed, since git's files name each other by path.
func (s *Server) outerGit(ctx context.Context, m *permissions, dir string, readOnly bool) {
	outer, git := outerGit(dir)
	if outer == "" || within(outer, dir) || s.holdsPrivate(outer) || holdsHome(s.homes, outer) {
		return
	}
	// No layer is in another.
	apart := !slices.ContainsFunc(m.changes, func(dir string) bool { return within(dir, outer) || within(outer, dir) })
	if m.policy.GitWrite && !readOnly && !apart {
		m.leaveOut("git: write", "does not hold for "+safetext.Quote(outer)+", the project's git folder: it is in a folder that is granted as a whole, and stays as it is")
	}
	if m.policy.GitWrite && !readOnly && apart {
		if l := s.opts.Gate.Layers(ctx, []string{outer}); len(l) == 1 && l[0].Kind == sandbox.LayerOverlay {
			l[0].Git = git
			m.policy.Layers = append(m.policy.Layers, l[0])
			slices.SortFunc(m.policy.Layers, func(a, b sandbox.Layer) int { return strings.Compare(a.Folder, b.Folder) })
			m.policy.ReadOnly = slices.DeleteFunc(m.policy.ReadOnly, func(path string) bool { return path == outer })
			return
		}
	}
	m.policy.ReadOnly = append(m.policy.ReadOnly, outer)
}

// folders are all that the run may read or change besides the system's own.
func (m *permissions) folders() []string {
	all := slices.Concat(m.policy.ReadOnly, m.policy.Writable)
	for _, l := range m.policy.Layers {
		all = append(all, l.Folder)
	}
	return all
}

// secrets are the values that must not be in results and logs.
func (m *permissions) secrets() []string {
	var values []string
	for _, kv := range m.env {
		_, value, _ := strings.Cut(kv, "=")
		values = append(values, value)
	}
	return values
}

// shown returns the variables that a tool sets, without those of which the
// user's own value counts.
func (m *permissions) shown(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(m.granted.Env, func(granted string) bool { return sameVariable(name, granted) })
	})
}

// insideAny reports whether path is one of dirs or below one.
func insideAny(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(path, dir) })
}

// homeFolders returns the user's home folder as it is spelled and as it is
// without links, or nothing when it is not known.
func homeFolders(environ []string) []string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	home := variable(environ, name)
	if !filepath.IsAbs(home) {
		return nil
	}
	homes := []string{filepath.Clean(home)}
	if resolved, err := filepath.EvalSymlinks(home); err == nil && resolved != homes[0] {
		homes = append(homes, resolved)
	}
	return homes
}

// withoutLinks is path without symbolic links, as far as it is there.
func withoutLinks(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	if parent := filepath.Dir(path); filepath.IsAbs(path) && parent != path {
		return filepath.Join(withoutLinks(parent), filepath.Base(path))
	}
	return path
}

// holdsHome reports whether dir is a home folder or has it in it, or is the top
// of a file system.
func holdsHome(homes []string, dir string) bool {
	dir = filepath.Clean(dir)
	return filepath.Dir(dir) == dir || slices.ContainsFunc(homes, func(home string) bool { return within(home, dir) })
}

// environ is the value of one of the server's own environment variables.
func (s *Server) environ(name string) string { return variable(s.opts.Environ, name) }

// variable is the value of a variable, empty when there is none.
func variable(environ []string, name string) string {
	value, _ := findVariable(environ, name)
	return value
}

func findVariable(environ []string, name string) (value string, ok bool) {
	for _, kv := range slices.Backward(environ) {
		if n, value, ok := strings.Cut(kv, "="); ok && sameVariable(n, name) {
			return value, true
		}
	}
	return "", false
}

// sameVariable compares names as the system does.
func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
