package cli

import (
	"context"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sources/change"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/store"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// updates remembers what the last updates of packs changed. The zero value is ready.
type updates struct {
	mu    sync.Mutex             // guards lines
	lines map[[3]string][]string // :: folder, digest and previous digest → differences
}

// maxUpdates is how many updates are remembered.
const maxUpdates = 256

// of returns what the last update of a pack changed. It returns nothing for a pack
// that was never updated.
func (u *updates) of(s *store.Store, id string, e lock.Entry) []string {
	dir, before, err := s.Before(id)
	if err != nil || before.Digest == e.Digest {
		return nil
	}
	key := [3]string{dir, e.Digest, before.Digest}
	u.mu.Lock()
	defer u.mu.Unlock()
	if lines, ok := u.lines[key]; ok {
		return lines
	}
	lines := differences(s, id, dir, before, e)
	if u.lines == nil || len(u.lines) >= maxUpdates {
		u.lines = make(map[[3]string][]string)
	}
	u.lines[key] = lines
	return lines
}

// differences compares a pack with its previous version. It skips what cannot be
// read: the question is asked anyway.
func differences(s *store.Store, id, dir string, before, e lock.Entry) []string {
	at, err := s.Path(id)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	old, err := change.Read(ctx, dir)
	if err != nil {
		return nil
	}
	now, err := change.Read(ctx, at)
	if err != nil {
		return nil
	}
	var lines []string
	if was, is := trust.Words(before.Signature), trust.Words(e.Signature); was != is {
		lines = append(lines, "signed by: "+was+" → "+is)
	}
	if before.Source != e.Source {
		lines = append(lines, "from: "+before.Source+" → "+e.Source)
	}
	differs, err := change.Between(old, now)
	if err != nil {
		return nil
	}
	return append(lines, differs.Lines()...)
}
