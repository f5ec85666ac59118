package churn_test

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/test/served"
)

// Half of the packs need no approval; the client's user allows each of the others
// once for the chat.
const rules = `rules:
  - allow: {pack: "w0/*", kind: [open, read, enable, run]}
  - allow: {pack: "w1/*", kind: [open, read, enable, run]}
`

// TestChurn has four writers change 200 packs for some seconds, or for as long as
// PACKS_MCP_CHURN says, while four clients of three servers use them. Each answer
// must be possible for the packs at one moment; only what was allowed ran; each
// client's lists are right once it has received all notifications; at the end,
// everything agrees with a new process, and nothing is left behind.
func TestChurn(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("PACKS_MCP_CHURN"), "2s"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.Put("home/config.yaml", rules)
	var writers []*writer
	var all, hot []*pack
	for n := range 4 {
		wr := newWriter(w.Packs, filepath.Join(w.Root, "aside"), n)
		if err := wr.begin(); err != nil {
			t.Fatal(err)
		}
		writers, all, hot = append(writers, wr), append(all, wr.packs...), append(hot, wr.hot...)
	}
	slices.SortFunc(all, func(a, b *pack) int { return strings.Compare(a.id, b.id) })

	web := w.Serve()
	clients := []*served.Client{w.Stdio("chat"), w.Stdio("once"), web.Client("chat"), web.Client("chat")}
	var readers []*reader
	for n, c := range clients {
		readers = append(readers, newReader(c, all, hot, n))
	}

	// The churn.
	listening, deaf := context.WithCancel(t.Context())
	defer deaf()
	var following sync.WaitGroup
	for _, r := range readers {
		following.Go(func() {
			if err := r.follow(listening); err != nil {
				t.Errorf("%v; the server logged:\n%s", err, r.Log())
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var working sync.WaitGroup
	for _, wr := range writers {
		working.Go(func() { wr.churn(ctx) })
	}
	for _, r := range readers {
		working.Go(func() { r.read(ctx) })
	}
	working.Wait()
	for _, wr := range writers {
		if wr.problem != nil {
			t.Fatal(wr.problem)
		}
	}
	for _, r := range readers {
		for _, text := range r.wrong {
			t.Error(text)
		}
	}

	// After it.
	fresh := newReader(w.Stdio("once"), all, hot, 0)
	for i, r := range readers {
		converge(t, w, i, r, fresh)
	}
	deaf()
	following.Wait()
	report(t, writers, readers)
	leaks(t, w, web, readers, fresh)
	audited(t, w, readers)
	left(t, w)
}

// converge waits until a client has the same packs and lists as a new process. The
// client asks only for the packs.
func converge(t *testing.T, w *served.World, n int, r, fresh *reader) {
	t.Helper()
	want, err := fresh.packsNow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var diff string
	tell := time.AfterFunc(served.Patience/2, func() { t.Logf("client %d does not have yet:\n%s", n, diff) })
	defer tell.Stop()
	w.Until("a client has the packs that a new process has", func() bool {
		got, err := r.packsNow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		diff = gocmp.Diff(want, got)
		return diff == ""
	})
	took := time.Since(begin)
	w.Until("what a client was told of is all there is", func() bool {
		now, err := r.listAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		diff = gocmp.Diff(now, r.kept())
		return diff == ""
	})
	t.Logf("client %d has the last packs after %v, and the last lists after %v", n, took.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))

	// With the same enabled in both.
	old := &reader{Client: r.Client, answers: make(map[string]int)}
	new := newReader(w.Stdio("once"), r.packs, r.hot, n)
	for _, p := range r.own {
		old.enable(t.Context(), p)
		new.enable(t.Context(), p)
	}
	if diff := gocmp.Diff(new.answers, old.answers); diff != "" {
		t.Errorf("enabling (-new process +client %d):\n%s", n, diff)
	}
	a, err := old.listAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := new.listAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(b, a); diff != "" {
		t.Errorf("lists (-new process +client %d):\n%s", n, diff)
	}
	new.End()
}

// report prints what happened.
func report(t *testing.T, writers []*writer, readers []*reader) {
	t.Helper()
	edits, answers := make(map[string]int), make(map[string]int)
	total, calls, runs := 0, 0, 0
	for _, wr := range writers {
		for what, n := range wr.edits {
			edits[what] += n
			total += n
		}
	}
	for i, r := range readers {
		for what, n := range r.answers {
			answers[what] += n
			calls += n
		}
		runs += len(r.runs)
		t.Logf("client %d heard of tools %d, prompts %d, resources %d times, and listed %d times", i, r.Heard("notifications/tools/list_changed"),
			r.Heard("notifications/prompts/list_changed"), r.Heard("notifications/resources/list_changed"), r.relist)
	}
	t.Logf("%d edits: %v", total, edits)
	t.Logf("%d calls, %d runs: %v", calls, runs, answers)
	if edits["replace"] == 0 || runs == 0 || answers["list"] == 0 || answers["open_docs"] == 0 || answers["read_file"] == 0 {
		t.Error("something never happened")
	}
}

// leaks compares the servers' resources with those of a server that was not part of
// the churn.
func leaks(t *testing.T, w *served.World, web *served.Server, readers []*reader, fresh *reader) {
	t.Helper()
	// A server keeps a helper for the next run, until there has been none for a while.
	settled := func(name string, old, new *served.Server) {
		t.Helper()
		var got, want served.Usage
		w.Until("a server holds what a new one holds", func() bool {
			got, want = usage(t, old), usage(t, new)
			return got.Descriptors <= want.Descriptors && got.Watches == want.Watches
		})
		t.Logf("%s holds %+v, a new one %+v", name, got, want)
		// The heap has grown in use, and shrinks at the next collection.
		if got.Resident > want.Resident+48<<20 || got.Threads > want.Threads+16 {
			t.Errorf("%s holds %+v, a new one %+v", name, got, want)
		}
	}
	for i, r := range readers[:2] { // the others share one
		settled(fmt.Sprintf("server %d", i), r.Server, fresh.Server)
	}
	for _, r := range readers[2:] {
		r.End()
	}
	other := w.Serve()
	c := other.Client("once")
	if _, err := (&reader{Client: c}).packsNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.End()
	settled("the HTTP server", web, other)
	same := func(name string, got, want []string) {
		t.Helper()
		slices.Sort(got)
		slices.Sort(want)
		t.Logf("%s: %d goroutines, a new one %d", name, len(got), len(want))
		if len(got) == 0 || len(got) > len(want) {
			t.Errorf("%s (-new +old):\n%s", name, gocmp.Diff(want, got))
		}
	}
	w.Until("no server tries its levels", func() bool { return len(temporary(w)) == 0 }) // what follows kills them
	same("the HTTP server", web.Goroutines(), other.Goroutines())
	idle := fresh.Goroutines()
	for i, r := range readers[:2] {
		same(fmt.Sprintf("server %d", i), r.Goroutines(), idle)
	}
}

func usage(t *testing.T, s *served.Server) served.Usage {
	t.Helper()
	u, err := s.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// audited compares the runs with the log's decisions.
func audited(t *testing.T, w *served.World, readers []*reader) {
	t.Helper()
	digests := make(map[string][]string) // :: run → the digests in its lines
	granted := make(map[string]string)   // :: grant → the digest it was given for
	for _, e := range w.Entries() {
		if e.Run != "" && e.PackDigest != "" {
			digests[e.Run] = append(digests[e.Run], e.PackDigest)
		}
		if e.Event != audit.EventDecision || e.Grant == "" {
			continue
		}
		if was, ok := granted[e.Grant]; ok && was != e.PackDigest {
			t.Errorf("grant %s was given for %s, and allowed %s", e.Grant, was, e.PackDigest)
		}
		granted[e.Grant] = e.PackDigest
	}
	checked := 0
	for i, r := range readers {
		for _, run := range r.runs {
			all := slices.Compact(digests[run.id])
			if len(all) != 1 {
				t.Errorf("client %d: %s has the digests %v in the log, want one", i, run.id, all)
				continue
			}
			run.pack.mu.Lock()
			want, known := run.pack.outputs[all[0]]
			run.pack.mu.Unlock()
			if !known || run.stdout != want {
				t.Errorf("client %d: %s of %s printed %q, and what was allowed prints %q (known: %v)", i, run.id, run.pack.id, run.stdout, want, known)
			}
			checked++
		}
	}
	t.Logf("%d runs were of what was allowed; %d grants", checked, len(granted))
}

// left looks for leftovers.
func left(t *testing.T, w *served.World) {
	t.Helper()
	unfinished := regexp.MustCompile(`\.new$|^making-|^\.`)
	count := make(map[string]int)
	// Servers were killed, one perhaps while it tried a level. The next start cleans up.
	c := w.Serve().Client("once")
	if _, err := (&reader{Client: c}).packsNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.End()
	w.Until("nothing is left as temporary", func() bool { return len(temporary(w)) == 0 })
	err := filepath.WalkDir(w.Home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(w.Root, path)
		parts := strings.Split(rel, string(filepath.Separator))
		if len(parts) == 3 {
			count[parts[1]]++
		}
		if len(parts) == 3 && unfinished.MatchString(d.Name()) {
			t.Errorf("%s is left", rel)
		}
		if len(parts) == 3 && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	copies, err := os.ReadDir(filepath.Join(w.Home, "copies"))
	if err != nil {
		t.Error(err)
	}
	folders := 0
	for _, c := range copies {
		if c.IsDir() {
			folders++
		}
	}
	if folders > 64 {
		t.Errorf("%d private copies are kept, want 64 at most", folders)
	}
	t.Logf("left in the home: %v; %d copies", count, folders)
}

// temporary returns the names in the servers' folder for temporary files, where one
// that was just started tries its levels.
func temporary(w *served.World) (names []string) {
	list, err := os.ReadDir(w.Temp)
	if err != nil {
		w.T.Error(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}
