//go:build unix

package store_test

import (
	"slices"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// A feed reports every entry that was made, changed or deleted, even if the store was
// away or emptied meanwhile.
func TestFeed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		other, proxy := follow(t, e.URL()), e.Proxy(t)
		m := follow(t, proxy.URL())
		put := func(key string, rev uint64) uint64 {
			t.Helper()
			rev, err := other.Put(ctx, key, []byte("x"), rev, 0)
			wants(t, "Put", err, nil)
			return rev
		}
		one, two := put("q.1", 0), put("q.2", 0)
		put("g.1", 0)
		wants(t, "Sync", m.Sync(ctx), nil)
		f := m.Feed("q.")
		tells := func(when string, want ...string) {
			t.Helper()
			eventually(t, when+", the mirror follows", func() bool { return m.Sync(ctx) == nil })
			got := f.Take()
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: the feed has %q, want %q", when, got, want)
			}
		}
		tells("at first", "q.1", "q.2")
		tells("again")
		put("q.1", one)
		put("q.3", 0)
		put("g.2", 0)
		<-f.Wake()
		tells("after changes", "q.1", "q.3")
		proxy.Cut()
		wants(t, "Delete", other.Delete(ctx, "q.2", two), nil)
		put("q.4", 0)
		proxy.Mend()
		tells("after the store was away", "q.2", "q.4")
		if _, ok := m.Entry("q.2"); ok {
			t.Error("the mirror has what was deleted")
		}
		if e, ok := m.Entry("q.4"); !ok || string(e.Value) != "x" {
			t.Errorf("the mirror has %+v, %v", e, ok)
		}
	})
}
