package plan

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// permissions say what one run may access.
type permissions struct {
	policy  sandbox.Policy
	changes []string // folders of the user's that the run may change, in layers
	project string   // the project's folder, if the policy holds it or a part of it
	granted call.Granted
	layers  func(ctx context.Context, folders []string) []sandbox.Layer
	env     []string // granted variables as K=V
}

// permissions finds out what a run may access: its pack, the workspace, the folder it
// runs in, which it may change unless it declares that it only reads, and what the
// user grants it. The user's own folders are changed in layers. at is where it runs;
// nil: here.
func (p *Planner) permissions(ctx context.Context, c *Call, at Elsewhere, kind call.Kind, tool, dir string, policy tools.Policy) (*permissions, error) {
	pack := c.Pack
	if holdsHome(p.homes, pack.Dir) {
		return nil, &FolderError{Folder: pack.Dir, Pack: pack.ID, Problem: FolderHoldsHome}
	}
	switch {
	case p.HoldsPrivate(dir):
		return nil, &FolderError{Folder: dir, Problem: FolderHoldsPrivate}
	case p.HoldsPrivate(pack.Dir):
		return nil, &FolderError{Folder: pack.Dir, Pack: pack.ID, Problem: FolderHoldsPrivate}
	}
	limits := p.limits
	if policy.Timeout > 0 {
		limits.Timeout = policy.Timeout
	}
	if p.opts.TimeoutMax > 0 {
		limits.Timeout = min(limits.Timeout, p.opts.TimeoutMax)
	}
	limits.CPU = cmp.Or(p.opts.Limits.CPU, limits.Timeout)
	m := &permissions{layers: p.opts.Layers, policy: sandbox.Policy{ReadOnly: []string{pack.Dir}, Limits: limits, Together: p.opts.Together}}
	if at != nil {
		m.layers = at.Layers
	}
	if c.OwnFolder {
		m.policy.Writable = []string{c.Workspace} // made for this chat alone
		m.policy.Private = m.policy.Writable
	} else {
		m.changes = []string{c.Workspace}
	}
	// An unknown word means no network, the zero value.
	m.policy.Network, _ = sandbox.ParseNetwork(string(policy.Network))
	m.policy.Hosts = policy.Hosts

	elsewhere := !within(dir, pack.Dir) && !within(dir, c.Workspace)
	if elsewhere {
		m.project = p.opts.Project
		// A tool's own placeholders may choose the folder.
		if policy.ReadOnly {
			m.policy.ReadOnly = append(m.policy.ReadOnly, dir)
		} else {
			m.changes = append(m.changes, dir)
		}
	}
	m.policy.Review = policy.Review
	p.grant(m, pack, kind, tool)
	m.policy.Layers = m.layers(ctx, m.changes)
	for i := range m.policy.Layers {
		l := &m.policy.Layers[i]
		// A granted folder belongs to another repository, or contains some.
		l.Commits = m.policy.GitWrite && slices.Contains([]string{filepath.Clean(dir), filepath.Clean(c.Workspace)}, l.Folder)
		if m.policy.GitWrite && elsewhere && !policy.ReadOnly && l.Folder != filepath.Clean(dir) && within(dir, l.Folder) && isGitFolder(filepath.Join(dir, ".git")) {
			m.leaveOut("git: write", "does not apply to "+safetext.Quote(dir)+": it is in a folder that is granted as a whole, so its commits wait for you")
		}
	}
	if elsewhere {
		p.outerGit(ctx, m, dir, policy.ReadOnly)
	}
	return m, nil
}

// outerGit adds the folder outside of a worktree or a submodule that git needs. It is
// read-only unless commits may come back and the folder can be seen at its own
// path while it is changed, since git's files name each other by path.
func (p *Planner) outerGit(ctx context.Context, m *permissions, dir string, readOnly bool) {
	outer, git := outerGit(dir)
	if outer == "" || within(outer, dir) || p.HoldsPrivate(outer) || holdsHome(p.homes, outer) {
		return
	}
	// Layers cannot be nested.
	apart := !slices.ContainsFunc(m.changes, func(dir string) bool { return within(dir, outer) || within(outer, dir) })
	if m.policy.GitWrite && !readOnly && !apart {
		m.leaveOut("git: write", "does not apply to "+safetext.Quote(outer)+", the project's git folder: it is in a folder that is granted as a whole, so it is read-only")
	}
	if m.policy.GitWrite && !readOnly && apart {
		if l := m.layers(ctx, []string{outer}); len(l) == 1 && l[0].Kind == sandbox.LayerOverlay {
			l[0].Git = git
			m.policy.Layers = append(m.policy.Layers, l[0])
			slices.SortFunc(m.policy.Layers, func(a, b sandbox.Layer) int { return strings.Compare(a.Folder, b.Folder) })
			m.policy.ReadOnly = slices.DeleteFunc(m.policy.ReadOnly, func(path string) bool { return path == outer })
			return
		}
	}
	m.policy.ReadOnly = append(m.policy.ReadOnly, outer)
}

// folders returns everything that the run may read or change besides the system's own
// files.
func (m *permissions) folders() []string {
	all := slices.Concat(m.policy.ReadOnly, m.policy.Writable)
	for _, l := range m.policy.Layers {
		all = append(all, l.Folder)
	}
	return all
}

// unmoved returns a function that reports whether the paths that the run may read,
// except the pack, still lead where they do now. A person was shown where granted
// paths lead, so a link must not redirect them.
func (m *permissions) unmoved() func() bool {
	leads := make(map[string]string)
	for _, path := range m.policy.ReadOnly[1:] {
		leads[path] = paths.WithoutLinks(path)
	}
	for _, path := range m.granted.Folders {
		leads[path] = path
	}
	return func() bool {
		for path, was := range leads {
			if now, err := filepath.EvalSymlinks(path); err != nil || now != was {
				return false
			}
		}
		return true
	}
}

// secrets returns the values that must not be in results and logs.
func (m *permissions) secrets() []string {
	var values []string
	for _, kv := range m.env {
		_, value, _ := strings.Cut(kv, "=")
		values = append(values, value)
	}
	return values
}

// shown returns the variables that a tool sets, without those that the user's own
// value replaces.
func (m *permissions) shown(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(m.granted.Env, func(granted string) bool { return sameVariable(name, granted) })
	})
}
