package plan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// A planning is a planner and the house that it plans for.
type planning struct {
	*Planner
	servertest.House
}

// planner returns a planner for the user of a house, with a real runner's layers.
func planner(t *testing.T, h servertest.House, change func(*Options), openings ...Opening) planning {
	t.Helper()
	kept, err := changes.Open(t.Context(), changes.Options{Dir: filepath.Join(t.TempDir(), "changes")})
	if err != nil {
		t.Fatal(err)
	}
	runner := runner.New(runner.Options{Changes: kept, Skip: []sandbox.Level{sandbox.LevelPartial, sandbox.LevelFull}})
	o := Options{
		Layers: runner.Layers, Project: h.Project, Openings: openings,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.Home, "USERPROFILE=" + h.Home},
	}
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return planning{p, h}
}

// call returns a call of the pack in the house.
func (p planning) call(t *testing.T) *Call {
	t.Helper()
	c := &Call{
		Pack: &packs.Pack{ID: "acme/deploy", Dir: p.In("packs", "acme", "deploy"), Trust: packs.TrustUser},
		Tree: new(packfs.Tree), Workspace: p.opts.Workspace,
	}
	if c.Workspace == "" {
		c.Workspace, c.OwnFolder = paths.WithoutLinks(t.TempDir()), true
	}
	return c
}

// may finds out what a tool may access in dir; empty: in the workspace.
func (p planning) may(t *testing.T, tool, dir string, policy tools.Policy) *permissions {
	t.Helper()
	c := p.call(t)
	if dir == "" {
		dir = c.Workspace
	}
	m, err := p.permissions(t.Context(), c, nil, call.KindRun, tool, dir, policy)
	if err != nil {
		t.Fatal(err)
	}
	// Checks that hold every time.
	if m.policy.ReadOnly[0] != c.Pack.Dir || c.OwnFolder && m.policy.Writable[0] != c.Workspace {
		t.Errorf("permissions: the pack and the workspace are not the first of %q and %q", m.policy.ReadOnly, m.policy.Writable)
	}
	m.policy.ReadOnly = m.policy.ReadOnly[1:]
	if c.OwnFolder {
		m.policy.Writable = m.policy.Writable[1:]
	}
	return m
}

// A granted path that becomes a link to something else is not what was shown.
func TestGrantedPathMoves(t *testing.T) {
	h := servertest.NewHouse(t)
	p := planner(t, h, nil, Opening{Pack: "acme/deploy", Tool: "sh", Read: []string{h.In(".config", "gh"), h.In(".gitconfig")}})
	c := p.call(t)
	m, err := p.permissions(t.Context(), c, nil, call.KindRun, "sh", c.Workspace, tools.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	unmoved := m.unmoved()
	if !unmoved() {
		t.Error("something moved, want nothing")
	}
	if err := os.Rename(h.In(".config"), h.In(".config-before")); err != nil {
		t.Fatal(err)
	}
	if unmoved() {
		t.Error("a folder that is gone was not seen")
	}
	if err := os.Symlink(h.In(".config-before"), h.In(".config")); err != nil {
		t.Fatal(err)
	}
	if unmoved() {
		t.Error("a link in the way was not seen")
	}
}

func TestGrantedFolders(t *testing.T) {
	h := servertest.NewHouse(t)
	fifo := h.In("fifo")
	for _, link := range [][2]string{{"/", "root"}, {"..", "up"}, {"nowhere", "dangling"}, {h.Home, "me"}, {"loop", "loop"}} {
		if err := os.Symlink(link[0], h.In(link[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(h.In("cache"), h.In(".config", "linked")); err != nil {
		t.Fatal(err)
	}
	own := h.In("own", "state")
	testdata.Plant(t, own, "-- attached.json --\n")
	testdata.Plant(t, h.Home, "-- log/audit.jsonl --\n")
	p := planner(t, h, func(o *Options) {
		o.Own, o.AuditLog = []string{own}, h.In("log", "audit.jsonl")
	},
		Opening{Pack: "acme/deploy", Tool: "sh", Read: []string{
			h.In(".config", "gh"), h.In(".gitconfig"), h.In("nothing"), h.In("cache"), h.In("own"),
			h.In("root"), h.In("up"), h.In("dangling"), h.In("me"), h.In("loop"), fifo,
		}, Home: true},
		Opening{Pack: "acme/deploy", Tool: "sh", Write: []string{
			h.In("cache"), h.In(".config", "linked"), h.In("dotfiles", "gitconfig"), h.In("own"), own, filepath.Join(own, ".."), h.In("log"),
		}},
		Opening{Pack: "acme/deploy", Tool: "other", Read: []string{h.In(".ssh")}},
	)
	m := p.may(t, "sh", "", tools.Policy{})
	if diff := cmp.Diff([]string{h.In(".config", "gh"), h.In("dotfiles", "gitconfig"), h.In("own")}, m.policy.ReadOnly); diff != "" {
		t.Errorf("may read (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{h.In("cache")}, m.changes); diff != "" {
		t.Errorf("may change (-want +got):\n%s", diff)
	}
	links := []paths.Link{{Path: h.In(".gitconfig"), Target: h.In("dotfiles", "gitconfig")}, {Path: h.In(".config", "linked"), Target: h.In("cache")}}
	if diff := cmp.Diff(links, m.policy.Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	var left []string
	for _, missing := range m.granted.LeftOut {
		rel, _ := filepath.Rel(h.Home, missing.What)
		left = append(left, rel+" "+missing.Why)
	}
	want := []string{
		"nothing does not exist", "root leads to your whole home folder", "up leads to your whole home folder", "dangling does not exist",
		"me leads to your whole home folder", "loop cannot be examined", "fifo does not exist",
		"dotfiles/gitconfig is not a folder", "own is used by packs-mcp itself", "own/state is used by packs-mcp itself",
		"log is used by packs-mcp itself",
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if m.granted.Home != h.Home {
		t.Errorf("home = %q, want %q", m.granted.Home, h.Home)
	}
	if m := p.may(t, "in_project", h.Project, tools.Policy{}); len(m.granted.Folders) > 0 || m.granted.Home != "" {
		t.Errorf("another tool was granted %+v", m.granted)
	}
}

// A grant is for declared tools, for the model's own commands, or for both. A tool's
// name never matches a command.
func TestGrantCovers(t *testing.T) {
	for _, tc := range []struct {
		grant     Opening
		run, exec bool
	}{
		{Opening{Pack: "*", Tool: "*"}, true, false},
		{Opening{Pack: "*", Tool: "exec_*"}, false, false},
		{Opening{Pack: "*", Tool: "*", Kinds: []string{"run"}}, true, false},
		{Opening{Pack: "*", Tool: "*", Kinds: []string{"exec"}}, false, true},
		{Opening{Pack: "*", Tool: "*", Kinds: []string{"run", "exec"}}, true, true},
		{Opening{Pack: "a/*", Tool: "*", Kinds: []string{"exec"}}, false, false},
	} {
		run, exec := tc.grant.covers("x", call.KindRun, "t"), tc.grant.covers("x", call.KindExec, "")
		if run != tc.run || exec != tc.exec {
			t.Errorf("%+v covers a run: %v, an exec: %v; want %v, %v", tc.grant, run, exec, tc.run, tc.exec)
		}
		if tc.grant.covers("x", call.KindOpen, "t") {
			t.Errorf("%+v covers what starts no program", tc.grant)
		}
	}
}

// All of the user's folders that a run may change are layered. Only a workspace that
// was made for the chat is changed directly.
func TestLayered(t *testing.T) {
	h := servertest.NewHouse(t)
	testdata.Plant(t, h.Project, "-- file --\n")
	p := planner(t, h, nil,
		Opening{Pack: "acme/deploy", Tool: "sh", Write: []string{h.In("site", "docs")}},
		Opening{Pack: "acme/deploy", Tool: "gh", Write: []string{h.In("cache")}, Git: true},
	)
	for _, c := range []struct {
		name, tool, dir string
		readOnly        bool
		layers          []string // below the home
		git             bool
	}{
		{"workspace", "x", "", false, nil, false},
		{"project", "x", h.Project, false, []string{"site"}, false},
		{"project, only read", "x", h.Project, true, nil, false},
		{"project, only read, and a folder of it granted", "sh", h.Project, true, []string{"site/docs"}, false},
		{"project, and a folder of it granted", "sh", h.Project, false, []string{"site"}, false},
		{"project and another folder", "gh", h.Project, false, []string{"cache", "site"}, true},
		{"a folder of the project", "x", h.In("site", "docs"), false, []string{"site/docs"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := p.may(t, c.tool, c.dir, tools.Policy{ReadOnly: c.readOnly})
			var got []string
			for _, l := range m.policy.Layers {
				rel, _ := filepath.Rel(h.Home, l.Folder)
				got = append(got, filepath.ToSlash(rel))
			}
			if !slices.Equal(got, c.layers) || len(m.policy.Writable) > 0 || m.policy.GitWrite != c.git {
				t.Errorf("layers = %q, writable = %q, git %v; want %q, none, %v", got, m.policy.Writable, m.policy.GitWrite, c.layers, c.git)
			}
			if c.readOnly && !slices.Contains(m.policy.ReadOnly, c.dir) {
				t.Errorf("%s is not in %q", c.dir, m.policy.ReadOnly)
			}
		})
	}
	t.Run("the user's own workspace", func(t *testing.T) {
		p := planner(t, h, func(o *Options) { o.Workspace = h.In("cache") })
		m := p.may(t, "x", "", tools.Policy{})
		if len(m.policy.Layers) != 1 || m.policy.Layers[0].Folder != h.In("cache") || len(m.policy.Writable) > 0 {
			t.Errorf("layers = %+v, writable = %q, want it layered", m.policy.Layers, m.policy.Writable)
		}
	})
	t.Run("the pack in the project", func(t *testing.T) {
		p := planner(t, h, func(o *Options) { o.Project = h.In("packs") })
		// In the pack, and in folders of it, nothing may be written.
		for _, dir := range []string{"acme/deploy", "acme/deploy/src"} {
			m := p.may(t, "x", h.In("packs", dir), tools.Policy{})
			if len(m.policy.Writable)+len(m.policy.Layers) > 0 {
				t.Errorf("in %s: may change %q and %+v", dir, m.policy.Writable, m.policy.Layers)
			}
		}
	})
}

// The limit on processor time is the timeout of each tool, unless it is configured.
func TestProcessorTime(t *testing.T) {
	h := servertest.NewHouse(t)
	for _, c := range []struct{ configured, tool, want time.Duration }{
		{0, 0, 30 * time.Second}, {0, 5 * time.Second, 5 * time.Second}, {7 * time.Second, 0, 7 * time.Second}, {7 * time.Second, time.Minute, 7 * time.Second},
	} {
		p := planner(t, h, func(o *Options) { o.Limits.CPU = c.configured })
		if m := p.may(t, "sh", "", tools.Policy{Timeout: c.tool}); m.policy.Limits.CPU != c.want {
			t.Errorf("configured %v, tool %v: %v, want %v", c.configured, c.tool, m.policy.Limits.CPU, c.want)
		}
	}
}
