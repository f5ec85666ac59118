package cli

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/sources/change"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/store"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// UserStore keeps the packs that a person added for all projects.
func UserStore(cfg *config.Config) *store.Store {
	return &store.Store{Dir: cfg.Paths.Sources, LockFile: filepath.Join(filepath.Dir(cfg.Paths.Sources), lock.Name)}
}

// ProjectStore keeps the packs of a project.
func ProjectStore(project string) *store.Store {
	return &store.Store{Dir: filepath.Join(project, ".packs"), LockFile: filepath.Join(project, lock.Name)}
}

// AddedFrom returns what says where the pack in a folder, with a digest, was added
// from. It goes by the lock file as it is at that moment.
func AddedFrom(cfg *config.Config) func(dir, digest string) call.From {
	changed := &updates{lines: map[[3]string][]string{}}
	stores := []*store.Store{UserStore(cfg)}
	if project := Project(cfg); project != "" {
		stores = append(stores, ProjectStore(project))
	}
	return func(dir, digest string) call.From {
		for _, s := range stores {
			base, err := filepath.EvalSymlinks(s.Dir)
			if err != nil {
				continue
			}
			rel, err := filepath.Rel(base, dir)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			return changed.fromLock(s, filepath.ToSlash(rel), digest)
		}
		return call.From{}
	}
}

// updates knows what the last updates of packs changed.
type updates struct {
	mu    sync.Mutex             // guards lines
	lines map[[3]string][]string // :: folder, digest and digest before → what differs
}

// maxUpdates is how many updates are known at once.
const maxUpdates = 256

// of returns what the last update of a pack changed; nothing for a pack that was added
// and never updated.
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
	if len(u.lines) >= maxUpdates {
		clear(u.lines)
	}
	u.lines[key] = lines
	return lines
}

// differences compares the version before with the pack. What cannot be read is not
// compared: the question is asked all the same.
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
	return append(lines, change.Between(old, now).Lines()...)
}

func (u *updates) fromLock(s *store.Store, id, digest string) call.From {
	l, err := s.Read()
	if err != nil { // somebody broke it: whatever the pack is, it is not what was added
		return call.From{Differs: true}
	}
	e, ok := l.Packs[id]
	if !ok {
		return call.From{}
	}
	f := call.From{Source: e.Resolved, Signer: trust.Words(e.Signature), Differs: e.Digest != digest}
	if runtime.GOOS == "windows" && f.Differs { // which does not keep who may execute a file
		same, err := s.Holds(id, e)
		f.Differs = err != nil || !same
	}
	if !f.Differs {
		f.Updated = u.of(s, id, e)
	}
	return f
}
