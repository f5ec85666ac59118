package cli

import (
	"path/filepath"
	"runtime"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
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
// from. It goes by the lock file as it is at that moment. That of a project comes with the
// project, packs included, so the signer that it names is only what it says.
func AddedFrom(cfg *config.Config) func(dir, digest string) call.From {
	stores := []*store.Store{UserStore(cfg)}
	if project := Project(cfg); project != "" {
		stores = append(stores, ProjectStore(project))
	}
	return func(dir, digest string) call.From {
		for i, s := range stores {
			base, err := filepath.EvalSymlinks(s.Dir)
			if err != nil {
				continue
			}
			rel, err := filepath.Rel(base, dir)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			return fromLock(s, filepath.ToSlash(rel), digest, i > 0)
		}
		return call.From{}
	}
}

func fromLock(s *store.Store, id, digest string, project bool) call.From {
	l, err := s.Read()
	if err != nil { // somebody broke it: whatever the pack is, it is not what was added
		return call.From{Differs: true}
	}
	e, ok := l.Packs[id]
	if !ok {
		return call.From{}
	}
	f := call.From{Source: e.Resolved, Signer: trust.Words(e.Signature), Differs: e.Digest != digest}
	if project && e.Signature != nil {
		f.Signer = "(so says the project's " + lock.Name + ") " + f.Signer // first, so that no long name hides it
	}
	if runtime.GOOS == "windows" && f.Differs { // which does not keep who may execute a file
		same, err := s.Holds(id, e)
		f.Differs = err != nil || !same
	}
	return f
}
