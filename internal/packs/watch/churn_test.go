package watch_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// TestChurn has four writers change 200 packs at random, for a second or as long as
// PACKS_MCP_CHURN says, while readers look. Each catalog that is seen is consistent:
// every pack in it existed, with the words that belong to its id. The last one equals
// what a new scan finds.
func TestChurn(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("PACKS_MCP_CHURN"), "1s"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, opts := range kinds() {
		t.Run(kind, func(t *testing.T) {
			p := newPlace(t)
			const each = 50
			for w := range 4 {
				for i := range each {
					p.pack(fmt.Sprintf("root/w%d/p%d", w, i), "0")
				}
			}
			f := follow(t, []string{p.path("root")}, opts)
			f.waitIdle()
			ctx, cancel := context.WithTimeout(t.Context(), length)
			defer cancel()
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() { churn(ctx, t, p.path(fmt.Sprintf("root/w%d", w)), each, uint64(w)) })
			}
			for range 2 {
				wg.Go(func() {
					for ctx.Err() == nil {
						check(t, f.lib.Catalog(ctx))
					}
				})
			}
			wg.Wait()
			fresh, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: p.path("root"), AttachAll: true}}})
			p.must(err)
			want := show(fresh)
			for end := time.Now().Add(patience); !slices.Equal(want, show(f.lib.Catalog(t.Context()))) && time.Now().Before(end); {
				select {
				case <-f.wake:
				case <-f.idle:
				case <-time.After(time.Second):
				}
			}
			f.watcher.Close()
			if diff := gocmp.Diff(want, show(f.lib.Catalog(t.Context()))); diff != "" {
				t.Errorf("(-new scan +there):\n%s", diff)
			}
		})
	}
}

// churn edits, removes, makes and moves the packs below dir. No other writer does.
func churn(ctx context.Context, t *testing.T, dir string, packs int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	check := func(err error) {
		if err != nil && !os.IsNotExist(err) && !os.IsExist(err) {
			t.Error(err)
		}
	}
	for n := 1; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("p%d", r.IntN(packs))
		at := filepath.Join(dir, name)
		text := []byte(doc(name, fmt.Sprintf("%d", n)))
		switch r.IntN(6) {
		case 0:
			check(os.RemoveAll(at))
		case 1:
			check(os.MkdirAll(at, 0o755))
			check(os.WriteFile(filepath.Join(at, "tools.json"), []byte("{}"), 0o644))
		case 2:
			away := filepath.Join(dir, "."+name)
			check(os.Rename(at, away))
			if err := os.Rename(away, at); err != nil {
				check(os.RemoveAll(away))
			}
		default:
			check(os.MkdirAll(at, 0o755))
			next := filepath.Join(at, ".next")
			check(os.WriteFile(next, text, 0o644))
			check(os.Rename(next, filepath.Join(at, "SKILL.md")))
		}
	}
}

func check(t *testing.T, c *packs.Catalog) {
	t.Helper()
	before := ""
	for _, p := range c.All() {
		if !p.Valid || p.Name != filepath.Base(p.Dir) || !strings.HasSuffix(p.ID, "/"+p.Name) || strings.Trim(p.Description, "0123456789") != "" || p.ID <= before {
			t.Errorf("%q in %q, called %q, says %q, with %v", p.ID, p.Dir, p.Name, p.Description, p.Problems)
		}
		before = p.ID
	}
}
