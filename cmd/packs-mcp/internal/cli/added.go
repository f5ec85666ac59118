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
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
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

// Added knows which packs were added from elsewhere, according to the lock files as
// they are at the moment. It is safe for concurrent use.
type Added struct {
	stores  []*addedStore
	changed updates
	scanned scans
}

// An addedStore is a store whose lock file is read again when it was replaced.
type addedStore struct {
	*store.Store
	foreign bool // the lock file comes with a project, which may claim anything

	mu   sync.Mutex // guards what follows
	info fs.FileInfo
	lock *lock.Lock
	err  error
	dir  fs.FileInfo // the store's folder when base was determined
	base string      // the folder, links resolved
}

// folder returns the store's folder with links resolved; false: it does not exist.
// Resolving links looks at each folder above, so it is only done again if the folder
// was replaced.
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

// NewAdded returns an Added for the packs of the user and of the project.
func NewAdded(cfg *config.Config) *Added {
	a := &Added{stores: []*addedStore{{Store: UserStore(cfg)}}}
	if project := Project(cfg); project != "" {
		a.stores = append(a.stores, &addedStore{Store: ProjectStore(project), foreign: true})
	}
	return a
}

// read returns what the lock file says. Writing a lock replaces its file, so a new
// one has another identity or time.
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

// signer returns who signed a pack. A project's lock file comes with the project, and
// so do its packs, so the signer that it names is only a claim.
func (s *addedStore) signer(e lock.Entry) string {
	words := trust.Words(e.Signature)
	if s.foreign && e.Signature != nil {
		words = "(so says the project's " + lock.Name + ") " + words // at the beginning, so that no long name hides it
	}
	return words
}

// find returns the store that holds a folder, and the folder's id in that store.
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
	Signer   string // the signer, in words
}

// Pack returns what is known about the pack in a folder, if it was added. Only a
// rulebook that the user added counts as vetted: a project can claim that of
// anything.
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

// own returns what the user's own lock file says about the pack in a folder.
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

// From returns where the pack in a folder, with a digest, was added from.
func (a *Added) From(dir, digest string) call.From {
	s, id := a.find(dir)
	if s == nil {
		return call.From{}
	}
	l, err := s.Read() // read it again for what a person is asked about
	if err != nil {    // the file is damaged, so nothing confirms that the pack is what was added
		return call.From{Differs: true}
	}
	e, ok := l.Packs[id]
	if !ok {
		return call.From{}
	}
	f := call.From{Source: e.Resolved, Signer: s.signer(e), Differs: e.Digest != digest}
	if runtime.GOOS == "windows" && f.Differs { // Windows does not keep the permission to execute a file
		same, err := s.Holds(id, e)
		f.Differs = err != nil || !same
	}
	if !f.Differs {
		f.Updated = a.changed.of(s.Store, id, e)
	}
	return f
}

// Origin returns who offers the pack in a folder.
func (a *Added) Origin(dir string) offer.Origin {
	p, ok := a.Pack(dir)
	if !ok || p.Provider == sources.NoProvider {
		return offer.Origin{}
	}
	return offer.Origin{Label: p.Provider.Label(), CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt}
}
