//go:build unix

package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/search"
	"github.com/packs-mcp/packs-mcp/internal/packs/watch"
	"github.com/packs-mcp/packs-mcp/test/plant"
)

// spent returns the processor time that this process has used so far, so that other
// processes on a shared machine do not matter, and using several cores gives no advantage.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func heap() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkScan measures finding packs beside walking the tree, alternating: without an
// index, with one, and again while serving.
func BenchmarkScan(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("packs=%d", n), func(b *testing.B) { benchmarkScan(b, n) })
	}
}

func benchmarkScan(b *testing.B, n int) {
	dir := b.TempDir()
	made, err := plant.Write(dir, 1, n)
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(2 * time.Second) // more recent files are not remembered
	opts := packs.Options{Roots: []packs.Root{{Dir: dir, AttachAll: true}}, Index: memo.Index{Dir: b.TempDir(), Version: "1"}}
	order := []string{"walk", "cold", "save", "warm", "look", "edit"}
	times := make(map[string][]time.Duration)
	measure := func(what string, do func() error) {
		begin := spent(b)
		if err := do(); err != nil {
			b.Fatalf("%s: %v", what, err)
		}
		times[what] = append(times[what], spent(b)-begin)
	}
	var memory int64
	for b.Loop() {
		if err := os.RemoveAll(opts.Index.Dir); err != nil {
			b.Fatal(err)
		}
		before := heap()
		measure("walk", func() error {
			got, err := plant.Walk(dir)
			if got != n {
				return fmt.Errorf("%d packs", got)
			}
			return err
		})
		var lib *packs.Library
		measure("cold", func() error { lib, err = packs.NewLibrary(b.Context(), opts, nil); return err })
		measure("save", func() error { _, err := lib.SaveIndex(b.Context()); return err })
		lib = nil
		runtime.GC()
		measure("warm", func() error { lib, err = packs.NewLibrary(b.Context(), opts, nil); return err })
		measure("look", func() error { return lib.Rescan(b.Context()) })
		measure("edit", func() error { _, err := lib.Refresh(b.Context(), made[:1]); return err })
		memory = heap() - before
		if got := len(lib.Catalog(b.Context()).Attached()); got != n {
			b.Fatalf("%d packs", got)
		}
	}
	b.ReportMetric(0, "ns/op") // the sum of all has no meaning
	walk := median(times["walk"])
	b.Logf("%d packs, median of %d, time of processors, in turns", n, len(times["walk"]))
	for _, what := range order {
		m := median(times[what])
		b.Logf("  %-5s %9.2f ms   %5.2f × walk   %6.1f µs a pack", what, ms(m), float64(m)/float64(walk), 1000*ms(m)/float64(n))
		b.ReportMetric(float64(m)/float64(walk), what+"/walk")
	}
	b.Logf("  heap  %9.2f MiB, %d bytes a pack", float64(memory)/(1<<20), memory/int64(n))
	b.ReportMetric(float64(memory)/(1<<20), "heap-MiB")
}

// BenchmarkSearch measures indexing 10,000 packs, and querying the index.
func BenchmarkSearch(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	if _, err := plant.Write(dir, 1, n); err != nil {
		b.Fatal(err)
	}
	c, err := packs.Scan(b.Context(), packs.Options{Roots: []packs.Root{{Dir: dir, AttachAll: true}}})
	if err != nil {
		b.Fatal(err)
	}
	var docs []search.Document
	for _, p := range c.Attached() {
		docs = append(docs, search.Document{Name: p.ID, Tags: p.Tags(), Description: p.Description})
	}
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			search.New(slices.Values(docs))
		}
	})
	x := search.New(slices.Values(docs))
	for _, q := range []string{"invoice", "inv", "invioce", "deplyo pipelin for the custmer", "how do I migrate the customer database to a new server", strings.Repeat("service ticket refund ", 10)} {
		b.Run(fmt.Sprintf("%.30q", q), func(b *testing.B) {
			for b.Loop() {
				if len(x.Search(q, 20, search.Filter{})) == 0 {
					b.Fatal("nothing found")
				}
			}
		})
	}
}

// BenchmarkEdit measures wall-clock time from an edit of one of 1,000 packs to the new
// catalog, through the system's events.
func BenchmarkEdit(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	made, err := plant.Write(dir, 1, 1_000)
	if err != nil {
		b.Fatal(err)
	}
	lib, err := packs.NewLibrary(b.Context(), packs.Options{Roots: []packs.Root{{Dir: dir, AttachAll: true}}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	changed, idle := make(chan struct{}, 1_000), make(chan struct{}, 1_000)
	w := watch.Start(lib, watch.Options{
		Changed: func(context.Context) { changed <- struct{}{} }, Idle: func(context.Context) bool { idle <- struct{}{}; return false }, IdleAfter: 500 * time.Millisecond,
	})
	defer w.Close()
	<-idle
	var times []time.Duration
	for i := 0; b.Loop(); i++ {
		file := filepath.Join(made[i%len(made)], "SKILL.md")
		begin := time.Now()
		if err := os.WriteFile(file, fmt.Appendf(nil, "---\nname: n%d\ndescription: d%d\n---\n", i, i), 0o644); err != nil {
			b.Fatal(err)
		}
		<-changed
		times = append(times, time.Since(begin))
	}
	b.ReportMetric(ms(median(times)), "median-ms")
	b.ReportMetric(ms(high(times)), "p95-ms")
}

// high returns the 95th percentile.
func high(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)*95/100]
}
