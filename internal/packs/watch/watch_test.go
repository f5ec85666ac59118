package watch_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/watch"
)

// patience is how long a test waits for something that must happen.
const patience = 20 * time.Second

// A place is the directory that one test works in.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return place{t, dir}
}

func (p place) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p place) write(name, text string) {
	p.t.Helper()
	p.must(os.MkdirAll(filepath.Dir(p.path(name)), 0o755))
	p.must(os.WriteFile(p.path(name), []byte(text), 0o644))
}

// pack writes a pack, or overwrites it.
func (p place) pack(dir, description string) {
	p.t.Helper()
	p.write(dir+"/SKILL.md", doc(dir, description))
}

func doc(dir, description string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\nbody\n", filepath.Base(filepath.FromSlash(dir)), description)
}

func (p place) rename(from, to string) {
	p.t.Helper()
	p.must(os.Rename(p.path(from), p.path(to)))
}

func (p place) remove(name string) { p.t.Helper(); p.must(os.RemoveAll(p.path(name))) }

func (p place) link(target, name string) {
	p.t.Helper()
	if err := os.Symlink(filepath.FromSlash(target), p.path(name)); err != nil {
		p.t.Skipf("symlinks: %v", err)
	}
}

const oneTool = `{"tools":[{"name":"%s","description":"d","inputSchema":{"type":"object"},"command":{"program":"true"}}]}`

// table lists what people do to folders of packs, and what is seen of it.
var table = []struct {
	name   string
	before func(p place) // prepares the folder before the library is made; nil: it holds the pack a
	do     func(p place)
	want   []string // a line for each pack; see show
	still  bool     // no line differs, but a change must be reported
	silent bool     // no change must be reported
}{
	{name: "a new pack", do: func(p place) { p.pack("root/b", "new") }, want: []string{"a: old", "b: new"}},
	{name: "a new pack deep down", do: func(p place) { p.pack("root/x/y/z/b", "new") }, want: []string{"a: old", "x/y/z/b: new"}},
	{name: "a pack in a pack", before: func(p place) { p.pack("root/a", "old"); p.write("root/a/references/x.md", "x") },
		do: func(p place) { p.pack("root/a/references/b", "new") }, want: []string{"a/references/b: new", "a: old"}},
	{name: "a changed document", do: func(p place) { p.pack("root/a", "other") }, want: []string{"a: other"}},
	{name: "a changed body", do: func(p place) { p.write("root/a/SKILL.md", doc("a", "old")+"more\n") }, want: []string{"a: old"}, still: true},
	{name: "an atomic save", do: func(p place) {
		p.write("root/a/.SKILL.md.swp", doc("a", "saved"))
		p.rename("root/a/.SKILL.md.swp", "root/a/SKILL.md")
	}, want: []string{"a: saved"}},
	{name: "a save with a backup", do: func(p place) {
		p.rename("root/a/SKILL.md", "root/a/SKILL.md~")
		p.pack("root/a", "saved")
		p.remove("root/a/SKILL.md~")
	}, want: []string{"a: saved"}},
	{name: "equal size and time", do: func(p place) {
		info, err := os.Stat(p.path("root/a/SKILL.md"))
		p.must(err)
		p.pack("root/a", "new")
		p.must(os.Chtimes(p.path("root/a/SKILL.md"), info.ModTime(), info.ModTime()))
	}, want: []string{"a: new"}},
	{name: "a time in the future", do: func(p place) {
		later := time.Now().Add(time.Hour)
		p.pack("root/a", "one")
		p.must(os.Chtimes(p.path("root/a/SKILL.md"), later, later))
		p.pack("root/a", "new")
		p.must(os.Chtimes(p.path("root/a/SKILL.md"), later, later))
	}, want: []string{"a: new"}},
	{name: "a document that becomes invalid", do: func(p place) { p.write("root/a/SKILL.md", "---\nname: a\n---\n") }, want: []string{"a:  invalid"}},
	{name: "a document that heals", before: func(p place) { p.write("root/a/SKILL.md", "---\nname: a\n---\n") },
		do: func(p place) { p.pack("root/a", "healed") }, want: []string{"a: healed"}},
	{name: "a half-written document", do: func(p place) {
		text := doc("a", "whole")
		f, err := os.Create(p.path("root/a/SKILL.md"))
		p.must(err)
		for _, part := range []string{text[:5], text[5:20], text[20:]} {
			_, err := f.WriteString(part)
			p.must(err)
			p.must(f.Sync())
		}
		p.must(f.Close())
	}, want: []string{"a: whole"}},
	{name: "another entry document", before: func(p place) { p.write("root/a/README.md", doc("a", "old")) },
		do: func(p place) { p.pack("root/a", "new") }, want: []string{"a: new"}},
	{name: "no entry document", do: func(p place) { p.remove("root/a/SKILL.md") }, want: nil},
	{name: "a removed pack", before: func(p place) { p.pack("root/a", "old"); p.pack("root/b", "gone") },
		do: func(p place) { p.remove("root/b") }, want: []string{"a: old"}},
	{name: "a renamed pack", before: func(p place) { p.write("root/a/SKILL.md", doc("same", "old")) },
		do: func(p place) { p.rename("root/a", "root/b"); p.write("root/b/SKILL.md", doc("same", "later")) }, want: []string{"same: later"}},
	{name: "two packs that swap", before: func(p place) {
		p.pack("root/a/inner/one", "first")
		p.pack("root/b/inner/one", "other")
	}, do: func(p place) {
		p.rename("root/a", "root/c")
		p.rename("root/b", "root/a")
		p.rename("root/c", "root/b")
	}, want: []string{"a/inner/one: other", "b/inner/one: first"}},
	{name: "a directory moved in, then written in", before: func(p place) { p.pack("root/a", "old"); p.pack("away/x/b", "one") },
		do: func(p place) { p.rename("away/x", "root/x"); p.pack("root/x/b", "two") }, want: []string{"a: old", "x/b: two"}},
	{name: "a directory moved out", before: func(p place) { p.pack("root/a", "old"); p.pack("root/x/b", "one") },
		do: func(p place) { p.rename("root/x", "away"); p.pack("away/b", "two") }, want: []string{"a: old"}},
	{name: "a directory moved and written in", before: func(p place) { p.pack("root/x/b", "one") },
		do: func(p place) { p.rename("root/x", "root/y"); p.pack("root/y/b", "two") }, want: []string{"y/b: two"}},
	{name: "a symlink swapped", before: func(p place) {
		p.pack("root/.store/v1/b", "one")
		p.pack("root/.store/v2/b", "two")
		p.link(".store/v1", "root/now")
	}, do: func(p place) {
		p.link(".store/v2", "root/next")
		p.rename("root/next", "root/now")
	}, want: []string{"now/b: two"}},
	{name: "behind a symlink", before: func(p place) { p.pack("root/.store/b", "one"); p.link(".store", "root/now") },
		do: func(p place) { p.pack("root/.store/b", "two") }, want: []string{"now/b: two"}},
	{name: "a document behind a symlink", before: func(p place) { p.write("root/a/docs/x.md", doc("a", "one")); p.link("docs/x.md", "root/a/SKILL.md") },
		do: func(p place) { p.write("root/a/docs/x.md", doc("a", "two")) }, want: []string{"a: two"}},
	{name: "a new file with tools", do: func(p place) { p.write("root/a/tools.json", fmt.Sprintf(oneTool, "t")) }, want: []string{"a: old [tools.json]"}},
	{name: "a changed file with tools", before: func(p place) { p.pack("root/a", "old"); p.write("root/a/tools.json", fmt.Sprintf(oneTool, "t")) },
		do: func(p place) { p.write("root/a/tools.json", fmt.Sprintf(oneTool, "u")) }, want: []string{"a: old [tools.json]"}, still: true},
	{name: "a new folder of tools", do: func(p place) { p.write("root/a/tools/x.tool.json", "{}") }, want: []string{"a: old [tools/x.tool.json]"}},
	{name: "a changed file in a folder of tools", before: func(p place) { p.pack("root/a", "old"); p.write("root/a/tools/x.tool.json", "{}") },
		do: func(p place) { p.write("root/a/tools/x.tool.json", `{"a":1}`) }, want: []string{"a: old [tools/x.tool.json]"}, still: true},
	{name: "a file that belongs to no document", before: func(p place) { p.pack("root/a", "old"); p.write("root/a/references/x.md", "x") },
		do: func(p place) { p.write("root/a/references/x.md", "y") }, want: []string{"a: old"}, silent: true},
	{name: "a root that appears", before: func(place) {}, do: func(p place) { p.pack("root/a", "new") }, want: []string{"a: new"}},
	{name: "a root that appears with what is above", before: func(p place) { p.remove("root") }, do: func(p place) { p.pack("far/away/root/a", "new") }, want: []string{"a: new"}},
	{name: "a root that is moved in", before: func(p place) { p.pack("away/a", "new") }, do: func(p place) { p.rename("away", "root") }, want: []string{"a: new"}},
	{name: "a root that goes", do: func(p place) { p.remove("root") }, want: nil},
	{name: "a root that goes and comes back", do: func(p place) { p.remove("root"); p.pack("root/b", "new") }, want: []string{"b: new"}},
	{name: "a root that is replaced", before: func(p place) { p.pack("root/a", "old"); p.pack("away/a", "new") },
		do: func(p place) { p.rename("root", "gone"); p.rename("away", "root") }, want: []string{"a: new"}},
	{name: "a root behind a symlink that is swapped", before: func(p place) {
		p.pack("v1/a", "one")
		p.pack("v2/a", "two")
		p.link("v1", "root")
	}, do: func(p place) {
		p.link("v2", "next")
		p.rename("next", "root")
	}, want: []string{"a: two"}},
	{name: "a checkout of 2,000 files", before: func(p place) { checkout(p, "one") }, do: func(p place) { checkout(p, "two") }, want: checkedOut("two")},
}

func checkout(p place, text string) {
	for i := range 200 {
		dir := fmt.Sprintf("root/g%d/p%03d", i%10, i)
		p.pack(dir, text)
		for j := range 9 {
			p.write(fmt.Sprintf("%s/references/%d.md", dir, j), text)
		}
	}
}

func checkedOut(text string) []string {
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("g%d/p%03d: %s", i%10, i, text))
	}
	slices.Sort(lines)
	return lines
}

// show returns a line for each pack: its id, its description, its problems.
func show(c *packs.Catalog) []string {
	var lines []string
	for _, p := range c.All() {
		line := p.ID + ": " + p.Description
		if !p.Valid {
			line += " invalid"
		}
		if len(p.ToolFiles) > 0 {
			line += fmt.Sprintf(" %v", p.ToolFiles)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// A follower is a watched library, and what it reported.
type follower struct {
	t       *testing.T
	lib     *packs.Library
	watcher *watch.Watcher
	idle    chan struct{} // one value for each call
	wake    chan struct{} // has a value when something changed

	mu      sync.Mutex
	changed int
}

func follow(t *testing.T, roots []string, opts watch.Options) *follower {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	o := packs.Options{Logger: opts.Logger}
	for _, r := range roots {
		o.Roots = append(o.Roots, packs.Root{Dir: r, AttachAll: true})
	}
	lib, err := packs.NewLibrary(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return followLibrary(t, lib, opts)
}

func followLibrary(t *testing.T, lib *packs.Library, opts watch.Options) *follower {
	t.Helper()
	f := &follower{t: t, lib: lib, idle: make(chan struct{}, 1000), wake: make(chan struct{}, 1)}
	opts.Changed = func(context.Context) {
		f.mu.Lock()
		f.changed++
		f.mu.Unlock()
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	opts.Idle = func(context.Context) bool { f.idle <- struct{}{}; return false }
	f.watcher = watch.Start(lib, opts)
	t.Cleanup(f.watcher.Close)
	return f
}

func (f *follower) changes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *follower) waitIdle() {
	f.t.Helper()
	select {
	case <-f.idle:
	case <-time.After(patience):
		f.t.Fatal("the watcher is never idle")
	}
}

// until waits until done returns true.
func (f *follower) until(what string, done func() bool) {
	f.t.Helper()
	timeout := time.After(patience)
	for !done() {
		select {
		case <-f.wake:
		case <-timeout:
			f.t.Fatalf("%s: not after %v; there is %q", what, patience, show(f.lib.Catalog(f.t.Context())))
		}
	}
}

func kinds() map[string]watch.Options {
	return map[string]watch.Options{
		// All changes must come from events: there are no looks at everything.
		"events": {IdleAfter: 50 * time.Millisecond, Recheck: time.Hour},
		"poll":   {IdleAfter: 50 * time.Millisecond, Poll: true, Every: 20 * time.Millisecond},
	}
}

func TestTable(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(kinds())) {
		for _, tc := range table {
			t.Run(kind+"/"+strings.ReplaceAll(tc.name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				root := "root"
				if strings.Contains(tc.name, "what is above") {
					root = "far/away/root"
				}
				p.must(os.MkdirAll(p.dir, 0o755))
				if tc.before == nil {
					p.pack("root/a", "old")
				} else {
					tc.before(p)
				}
				f := follow(t, []string{p.path(root)}, kinds()[kind])
				if kind == "events" || tc.still { // a poller is always ready
					f.waitIdle()
				}
				before := f.changes()
				tc.do(p)
				if tc.silent {
					if kind == "events" {
						f.waitIdle() // there was an event, and it led to nothing
					}
				} else {
					f.until(tc.name, func() bool {
						return slices.Equal(show(f.lib.Catalog(t.Context())), tc.want) && (!tc.still || f.changes() > before)
					})
				}
				if now := f.changes(); tc.silent && kind == "events" && now != before {
					t.Errorf("%d changes were told, want none", now-before)
				}
				f.watcher.Close()
				fresh, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: p.path(root), AttachAll: true}}})
				p.must(err)
				if diff := cmp.Diff(show(fresh), show(f.lib.Catalog(t.Context()))); diff != "" {
					t.Errorf("the catalog is not that of a new scan (-new +there):\n%s", diff)
				}
			})
		}
	}
}

// Nothing is left of a closed watcher, whatever it was doing.
func TestClose(t *testing.T) {
	p := newPlace(t)
	checkout(p, "one")
	before := runtime.NumGoroutine()
	for i := range 4 {
		for kind, opts := range kinds() {
			f := follow(t, []string{p.path("root")}, opts)
			if i%2 == 0 {
				if kind == "events" {
					f.waitIdle()
				}
				p.pack("root/g0/p000", strconv.Itoa(i))
			}
			f.watcher.Close()
			f.watcher.Close() // a second call does no harm
			told := f.changes()
			p.pack("root/g0/p001", strconv.Itoa(i))
			if f.changes() != told {
				t.Error("a closed watcher told of a change")
			}
		}
	}
	if after := goroutines(before); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// goroutines returns how many goroutines there are. One that has just ended still
// counts for a moment, so it asks again while there are more than want.
func goroutines(want int) (n int) {
	for late := time.Now().Add(patience / 4); ; runtime.Gosched() {
		if n = runtime.NumGoroutine(); n <= want || time.Now().After(late) {
			return n
		}
	}
}

// A countedLibrary counts goroutines while the watched directories change.
type countedLibrary struct {
	*packs.Library
	before int
	most   atomic.Int64
}

func (c *countedLibrary) Dirs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir := range c.Library.Dirs() {
			c.most.Store(max(c.most.Load(), int64(goroutines(c.before+3))))
			if !yield(dir) {
				return
			}
		}
	}
}

// A look that finds no change is reported too.
func TestUnchanged(t *testing.T) {
	p := newPlace(t)
	p.pack("root/a", "old")
	unchanged := make(chan struct{}, 1000)
	opts := kinds()["events"]
	opts.Unchanged = func(context.Context) { unchanged <- struct{}{} }
	f := follow(t, []string{p.path("root")}, opts)
	f.waitIdle()
	before := f.changes()
	for len(unchanged) > 0 {
		<-unchanged
	}
	p.must(os.Mkdir(p.path("root/empty"), 0o755))
	select {
	case <-unchanged:
	case <-time.After(patience):
		t.Fatal("nobody is told of a look that finds nothing different")
	}
	if n := f.changes() - before; n != 0 {
		t.Errorf("told of %d changes, want none", n)
	}
}

// A watcher has at most two goroutines, and a third while it changes what is watched.
func TestGoroutines(t *testing.T) {
	p := newPlace(t)
	p.pack("root/a", "old")
	for kind, opts := range kinds() {
		lib, err := packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{{Dir: p.path("root")}}}, nil)
		p.must(err)
		counted := &countedLibrary{Library: lib}
		idle := make(chan struct{}, 100)
		opts.Idle = func(context.Context) bool { idle <- struct{}{}; return false }
		if kind == "poll" { // what was just written is read again and again
			opts.Changed, opts.Idle = func(context.Context) { idle <- struct{}{} }, nil
		}
		before := runtime.NumGoroutine()
		counted.before = before
		w := watch.Start(counted, opts)
		for i := range 3 {
			p.pack(fmt.Sprintf("root/%s%d", kind, i), "new")
			<-idle
			if n := goroutines(before+2) - before; n > 2 {
				t.Errorf("%s: %d goroutines, want two at most", kind, n)
			}
		}
		w.Close()
		if n := int(counted.most.Load()) - before; n > 3 {
			t.Errorf("%s: %d goroutines while it changes what is watched, want three at most", kind, n)
		}
		if n := goroutines(before) - before; n > 0 {
			t.Errorf("%s: %d goroutines are left", kind, n)
		}
	}
}

// What was created after the library was made, and before there were events, is
// watched like the rest.
func TestBeforeTheEvents(t *testing.T) {
	p := newPlace(t)
	p.pack("root/a", "old")
	lib, err := packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{{Dir: p.path("root"), AttachAll: true}}}, nil)
	p.must(err)
	p.pack("root/x/b", "new")
	f := followLibrary(t, lib, kinds()["events"])
	f.until("what was there before", func() bool { return slices.Equal(show(lib.Catalog(t.Context())), []string{"a: old", "x/b: new"}) })
	f.waitIdle()
	p.pack("root/x/b", "newer")
	f.until("a later edit of it", func() bool { return slices.Equal(show(lib.Catalog(t.Context())), []string{"a: old", "x/b: newer"}) })
}

// Attaching a pack is reported like a change of a pack, wherever the file that
// records it is, and even if somebody else looked at it first.
func TestAttached(t *testing.T) {
	for kind, opts := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.pack("root/a", "old")
			store := attach.Open(p.path("far/away/attached.json"))
			opts.Every = time.Hour
			lib, err := packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{{Dir: p.path("root")}}}, store)
			p.must(err)
			f := followLibrary(t, lib, opts)
			f.waitIdle()
			set := func(change func(*attach.Set)) {
				t.Helper()
				before := f.changes()
				p.must(store.Update(func(s *attach.Set) error { change(s); return nil }))
				lib.Catalog(t.Context()) // this is the first to look
				f.until("what is attached", func() bool { return f.changes() > before })
			}
			set(func(s *attach.Set) { s.Attach("a", attach.Entry{Dir: p.path("root/a")}) })
			if len(lib.Catalog(t.Context()).Attached()) != 1 {
				t.Error("the pack is not attached")
			}
			f.waitIdle()
			set(func(s *attach.Set) { s.Detach("a", time.Now()) })
			f.waitIdle()
			told := f.changes()
			p.write("far/away/neighbour.json", "{}")
			p.pack("aside/b", "new")
			p.rename("aside/b", "root/b") // with events, only this is reported
			if kind == "events" {
				f.until("the new pack", func() bool { return f.changes() > told })
				f.waitIdle()
				if n := f.changes() - told; n > 2 { // a second look at what is new, whose stamps cannot be relied on yet
					t.Errorf("%d changes were told", n)
				}
			}
		})
	}
}

// Renamed directories are watched under their new names.
func TestWrittenAfterTheSwap(t *testing.T) {
	p := newPlace(t)
	p.pack("root/a/inner/one", "first")
	p.pack("root/b/inner/one", "other")
	f := follow(t, []string{p.path("root")}, kinds()["events"])
	f.waitIdle()
	p.rename("root/a", "root/c")
	p.rename("root/b", "root/a")
	p.rename("root/c", "root/b")
	f.waitIdle()
	want := []string{"a/inner/one: new a", "b/inner/one: first"}
	p.pack("root/a/inner/one", "new a")
	f.until("the text written after the swap", func() bool { return slices.Equal(want, show(f.lib.Catalog(t.Context()))) })
}
