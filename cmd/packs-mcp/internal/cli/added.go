package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/server"
	"github.com/packs-mcp/packs-mcp/internal/sources"
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

// Added knows which packs were added from elsewhere. It goes by the lock files as they
// are at that moment, and many may ask at a time.
type Added struct {
	stores  []*addedStore
	changed updates
	scanned scans
}

// An addedStore is a store whose lock file is read again when it is another one.
type addedStore struct {
	*store.Store
	foreign bool // the lock file comes with a project, which may say anything

	mu   sync.Mutex // guards what follows
	info fs.FileInfo
	lock *lock.Lock
	err  error
	dir  fs.FileInfo // of the store's folder, when base was found out
	base string      // the folder without links
}

// folder returns the store's folder without links; false: it is not there. Following links
// takes a look at each folder above, so it is done again when it is another folder.
func (s *addedStore) folder() (string, bool) {
	dir, err := os.Stat(s.Dir)
	if err != nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil || !os.SameFile(s.dir, dir) {
		base, err := filepath.EvalSymlinks(s.Dir)
		if err != nil {
			return "", false
		}
		s.dir, s.base = dir, base
	}
	return s.base, true
}

// NewAdded returns what knows the packs of the user and of the project.
func NewAdded(cfg *config.Config) *Added {
	a := &Added{stores: []*addedStore{{Store: UserStore(cfg)}}}
	if project := Project(cfg); project != "" {
		a.stores = append(a.stores, &addedStore{Store: ProjectStore(project), foreign: true})
	}
	return a
}

// read returns what the lock file says. A file that a lock is written to is replaced, so
// another one has another identity or time.
func (s *addedStore) read() (*lock.Lock, error) {
	info, err := os.Lstat(s.LockFile)
	if err != nil {
		return s.Read()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.info == nil || !os.SameFile(s.info, info) || !s.info.ModTime().Equal(info.ModTime()) || s.info.Size() != info.Size() {
		s.lock, s.err = s.Read()
		s.info = info
	}
	return s.lock, s.err
}

// signer says who signed a pack. The lock file of a project comes with the project, packs
// included, so the signer that it names is only what it says.
func (s *addedStore) signer(e lock.Entry) string {
	words := trust.Words(e.Signature)
	if s.foreign && e.Signature != nil {
		words = "(so says the project's " + lock.Name + ") " + words // first, so that no long name hides it
	}
	return words
}

// find returns the store that has a folder, and the id that the folder has there.
func (a *Added) find(dir string) (*addedStore, string) {
	for _, s := range a.stores {
		base, there := s.folder()
		if rel, ok := paths.Below(base, dir); there && ok {
			return s, filepath.ToSlash(rel)
		}
	}
	return nil, ""
}

// An AddedPack is a pack that was added.
type AddedPack struct {
	lock.Entry
	Provider sources.Provider
	Signer   string // in words
}

// Pack returns what is known of the pack in a folder, if it was added. That a rulebook is
// vetted is only believed of one that the user added: a project can say so of anything.
func (a *Added) Pack(dir string) (AddedPack, bool) {
	s, id := a.find(dir)
	if s == nil {
		return AddedPack{}, false
	}
	l, err := s.read()
	if err != nil {
		return AddedPack{}, false
	}
	e, ok := l.Packs[id]
	p := AddedPack{e, sources.ProviderOf(e.Source), s.signer(e)}
	if s.foreign && p.Provider == sources.RulebookProvider {
		p.Provider = sources.PakProvider
	}
	return p, ok
}

// own returns what the user's own lock file says of the pack in a folder.
func (a *Added) own(dir string) (lock.Entry, bool) {
	s, id := a.find(dir)
	if s == nil || s.foreign {
		return lock.Entry{}, false
	}
	l, err := s.read()
	if err != nil {
		return lock.Entry{}, false
	}
	e, ok := l.Packs[id]
	return e, ok
}

// From says where the pack in a folder, with a digest, was added from.
func (a *Added) From(dir, digest string) call.From {
	s, id := a.find(dir)
	if s == nil {
		return call.From{}
	}
	l, err := s.Read() // what a person is asked about is read anew
	if err != nil {    // somebody broke it: whatever the pack is, it is not what was added
		return call.From{Differs: true}
	}
	e, ok := l.Packs[id]
	if !ok {
		return call.From{}
	}
	f := call.From{Source: e.Resolved, Signer: s.signer(e), Differs: e.Digest != digest}
	if runtime.GOOS == "windows" && f.Differs { // which does not keep who may execute a file
		same, err := s.Holds(id, e)
		f.Differs = err != nil || !same
	}
	if !f.Differs {
		f.Updated = a.changed.of(s.Store, id, e)
	}
	return f
}

// Origin says who offers the pack in a folder.
func (a *Added) Origin(dir string) server.Origin {
	p, ok := a.Pack(dir)
	if !ok || p.Provider == sources.NoProvider {
		return server.Origin{}
	}
	return server.Origin{Label: p.Provider.Label(), CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt}
}
