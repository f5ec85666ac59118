package gate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/caches"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A builder is a runner whose programs look into their caches, and leave something
// there.
type builder struct {
	runner

	folder string
	env    []string
	found  bool // something from an earlier run
	use    sandbox.CacheUse
	err    error
}

func (b *builder) Run(ctx context.Context, p sandbox.Policy, c sandbox.Command) (*sandbox.Result, error) {
	b.folder, b.env = p.Cache, c.Env
	if p.Cache != "" {
		left := filepath.Join(p.Cache, "object")
		_, err := os.Stat(left)
		b.found = err == nil
		if err := os.WriteFile(left, nil, 0o600); err != nil {
			return nil, err
		}
	}
	return &sandbox.Result{Level: sandbox.LevelFull, Cache: b.use}, b.err
}

// cachedRun is the call of a tool with a cache.
func cachedRun() call.Request {
	return with(toolRun(), func(r *call.Request) { r.Run.Cache = "go-build" })
}

// withCaches returns a gate with a store for caches, and a runner whose programs use
// them.
func withCaches(t *testing.T) (*bench, *builder, *caches.Store) {
	t.Helper()
	built, store := new(builder), caches.Open(filepath.Join(t.TempDir(), "caches"), caches.Options{})
	return newBench(t, func(o *Options) { o.Runner, o.Caches = built, store }), built, store
}

func (b *bench) run(req call.Request) {
	b.t.Helper()
	if _, err := b.approve(req, queue.Once).Run(b.t.Context()); err != nil {
		b.t.Fatalf("Run(%s) = %v", req.Kind, err)
	}
}

// A run finds what was left by runs that the same answer would cover, and nothing
// from other runs.
func TestCacheIsOfItsFacts(t *testing.T) {
	for _, s := range []struct {
		says   string
		change func(*call.Request)
		found  bool
	}{
		{"the same", func(*call.Request) {}, true},
		{"other arguments", func(r *call.Request) {
			r.Run.Command.Args = []string{"Grace"}
			r.Arguments = call.ParseArguments([]byte(`{"who":"Grace"}`))
		}, true},
		{"another chat", func(r *call.Request) { r.Caller.Chat = "stdio-2" }, true},
		{"another person", func(r *call.Request) { r.Caller.Person = "grace" }, false},
		{"the client of this machine", func(r *call.Request) { r.Caller.Origin = call.OriginClient }, false},
		{"another pack", func(r *call.Request) { r.Pack.ID = "other" }, false},
		{"a pack of the same name from another root", func(r *call.Request) { r.Pack.Dir = "/elsewhere/triage" }, false},
		{"a changed pack", func(r *call.Request) { r.Pack.Digest = "sha256:" + strings.Repeat("ac", 32) }, false},
		{"a changed declaration", func(r *call.Request) { r.Run.Definition = strings.Repeat("df", 32) }, false},
		{"another trust", func(r *call.Request) { r.Pack.Trust = call.TrustBundled }, false},
		{"attached again", func(r *call.Request) { r.Pack.Attached = "later" }, false},
		{"another tool", func(r *call.Request) { r.Run.Tool = "other" }, false},
		{"another cache", func(r *call.Request) { r.Run.Cache = "npm" }, false},
		{"another program", func(r *call.Request) { r.Run.Command.Program.Digest = strings.Repeat("77", 32) }, false},
		{"the network", func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull }, false},
		{"another project", func(r *call.Request) { r.Run.Project = "/home/ada/site" }, false},
		{"a granted variable", func(r *call.Request) { r.Run.Granted.Env = []string{"GITHUB_TOKEN"} }, false},
	} {
		t.Run(s.says, func(t *testing.T) {
			b, built, _ := withCaches(t)
			b.run(cachedRun())
			first := built.folder
			if first == "" || built.found || !slices.Contains(built.env, "PACKS_CACHE="+first) {
				t.Fatalf("the first run has the cache %q, with something in it: %v, and the environment %q", first, built.found, built.env)
			}
			b.run(with(cachedRun(), s.change))
			if built.found != s.found || (built.folder == first) != s.found {
				t.Errorf("a run with %s finds what another left: %v, want %v", s.says, built.found, s.found)
			}
		})
	}
}

// A tool without a cache gets none, even if other tools of the pack have one.
func TestNoCache(t *testing.T) {
	b, built, store := withCaches(t)
	b.run(toolRun())
	if built.folder != "" || slices.ContainsFunc(built.env, func(kv string) bool { return strings.HasPrefix(kv, "PACKS_CACHE=") }) {
		t.Errorf("the run has the cache %q and the environment %q", built.folder, built.env)
	}
	if list, err := store.List(); len(list) > 0 || err != nil {
		t.Errorf("List = %+v, %v, want none", list, err)
	}
}

// The question and the log mention the cache, and a full cache is emptied.
func TestCacheIsSaid(t *testing.T) {
	b, built, _ := withCaches(t)
	if q := b.ask(cachedRun()); !strings.Contains(textOf(q), "  keeps        \"go-build\", a cache between its runs, up to") {
		t.Errorf("the question does not name the cache:\n%s", textOf(q))
	}
	if q := b.ask(toolRun()); strings.Contains(textOf(q), "cache") {
		t.Errorf("a question without a cache:\n%s", textOf(q))
	}
	built.use = sandbox.CacheUse{Bytes: 5, Full: true}
	b.run(cachedRun())
	all := b.log.all()
	for i, e := range all {
		if e.Event != audit.EventRunStart {
			continue
		}
		if e.Cache != "go-build" || !slices.Contains(e.Writes, built.folder) || e.Limits.Cache != 1<<30 || !all[i+1].CacheFull {
			t.Errorf("the lines of the run are %+v and %+v", e, all[i+1])
		}
	}
	built.use = sandbox.CacheUse{}
	b.run(cachedRun())
	if built.found {
		t.Error("a full cache was not emptied")
	}
}

// A run that could not start leaves the cache as it was.
func TestCacheOfNoRun(t *testing.T) {
	b, built, store := withCaches(t)
	built.use = sandbox.CacheUse{Bytes: 5}
	b.run(cachedRun())
	built.err = errors.New("no such program")
	if _, err := b.approve(cachedRun(), queue.Once).Run(t.Context()); err == nil {
		t.Fatal("Run = nil, want an error")
	}
	if list, err := store.List(); err != nil || len(list) != 1 || list[0].Bytes != 5 {
		t.Errorf("List = %+v, %v, want one of 5 bytes", list, err)
	}
}

// If there is no store for it, or something else is in its place, nothing starts.
func TestNoRunWithoutItsCache(t *testing.T) {
	b := newBench(t)
	_, err := b.approve(cachedRun(), queue.Once).Run(t.Context())
	b.denied(err, "keeps no caches")
	dir := filepath.Join(t.TempDir(), "caches")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b = newBench(t, func(o *Options) { o.Caches = caches.Open(dir, caches.Options{}) })
	_, err = b.approve(cachedRun(), queue.Once).Run(t.Context())
	b.denied(err, "is not a folder")
	if b.runner.count() > 0 {
		t.Error("a program was started")
	}
	// Only the gate says where a cache is.
	b, _, _ = withCaches(t)
	if _, _, err := b.Check(t.Context(), with(toolRun(), func(r *call.Request) { r.Run.Policy.Cache = "/home/ada" }), nil); err == nil {
		t.Error("a request that names the folder of a cache is not refused")
	}
}
