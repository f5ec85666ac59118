package plan

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// A folder that contains the whole home cannot be a project, a workspace, or a pack
// that runs something.
func TestHomeIsNoProject(t *testing.T) {
	h := servertest.NewHouse(t)
	for _, dir := range []string{h.Home, filepath.Dir(h.Home), "/"} {
		for _, change := range []func(*Options){
			func(o *Options) { o.Project = dir },
			func(o *Options) { o.Workspace = dir },
		} {
			o := Options{Environ: []string{"HOME=" + h.Home, "USERPROFILE=" + h.Home}}
			change(&o)
			if p, err := New(o); err == nil || !strings.Contains(err.Error(), "holds your whole home folder") {
				t.Errorf("New with %q = %v, %v, want an error", dir, p, err)
			}
		}
		p := planner(t, h, nil)
		c := p.call(t)
		c.Pack.Dir = dir
		_, err := p.permissions(t.Context(), c, nil, call.KindRun, "sh", c.Workspace, tools.Policy{})
		if e, ok := errors.AsType[*FolderError](err); !ok || e.Problem != FolderHoldsHome {
			t.Errorf("permissions of a pack in %q = %v, want an error about the home folder", dir, err)
		}
	}
}

// Keys and tokens must not be in folders that every run can read.
func TestPrivateInSystemFolders(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("folders of the system are others here")
	}
	options := func(private string) Options { return Options{Private: []string{private}} }
	if _, err := New(options("/usr/local/etc/packs.yaml")); err == nil || !strings.Contains(err.Error(), "/usr/local/etc/packs.yaml") {
		t.Errorf("New with tokens in /usr = %v, want an error that names the file", err)
	}
	if _, err := New(options(filepath.Join(t.TempDir(), "packs.yaml"))); err != nil {
		t.Error(err)
	}
	// Everybody can read it.
	if _, err := New(options("/etc/passwd")); err == nil {
		t.Error("New with keys in /etc/passwd = nil")
	}
}

// A folder that contains what only this program may read is never opened, and nothing
// runs in it.
func TestPrivateIsNotOpened(t *testing.T) {
	h := servertest.NewHouse(t)
	config := h.In("site", "docs", "packs.yaml")
	testdata.Plant(t, h.Home, "-- site/docs/packs.yaml --\nkey\n")
	p := planner(t, h, func(o *Options) { o.Private = []string{config} },
		Opening{Pack: "*", Tool: "*", Read: []string{config, h.In("site", "docs"), h.Project}, Write: []string{h.In("site", "docs")}})
	m := p.may(t, "sh", "", tools.Policy{})
	if len(m.granted.Folders) > 0 || len(m.granted.LeftOut) != 3 {
		t.Errorf("granted = %+v, want nothing", m.granted)
	}
	for _, missing := range m.granted.LeftOut {
		if !strings.Contains(missing.Why, "only packs-mcp itself may read") {
			t.Errorf("left out %+v, want it for what only this program may read", missing)
		}
	}
	c := p.call(t)
	_, err := p.permissions(t.Context(), c, nil, call.KindRun, "sh", h.Project, tools.Policy{})
	if e, ok := errors.AsType[*FolderError](err); !ok || e.Problem != FolderHoldsPrivate || e.Pack != "" {
		t.Errorf("permissions in the project = %v, want an error about keys", err)
	}
}
