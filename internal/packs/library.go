package packs

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/byname"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
)

// CodeAttachRefused is an error: the file of attached packs was not used.
const CodeAttachRefused = "attach-refused"

// A Library holds the current [Catalog] of some roots. It makes a new one when a person
// attaches or detaches a pack, in any process, and when it is told that something may
// have changed. Safe for concurrent use. Getting the Catalog never waits for a scan in
// another goroutine.
type Library struct {
	opts  Options
	store *attach.Store // nil: nothing is ever attached by a person

	scanning sync.Mutex   // held for a whole scan
	memos    []*memo.Memo // what the last scan remembers, one for each root; guarded by scanning
	unsaved  []bool       // for each root: something was read since it was last saved; guarded by scanning
	stuck    int          // how many unread documents remain that another scan would not read either; guarded by scanning
	missed   bool         // the last scan failed, so the next Refresh has to scan everything; guarded by scanning

	saving sync.Mutex // held for a whole SaveIndex
	swept  bool       // guarded by saving

	mu      sync.Mutex
	version attach.Version // of the store's file, when catalog was made
	catalog *Catalog       // replaced whole, never modified
	anyFile bool           // a pack may depend on a file of any name

	// between is the Catalog to return while a scan runs and the store's file has
	// changed. It was made of the Catalog betweenOf and the file with betweenVersion.
	// It is nil until somebody asks for it.
	between, betweenOf *Catalog
	betweenVersion     attach.Version
}

// NewLibrary scans the roots of opts, with the help of opts.Index. It takes what a
// person attached from store and ignores opts.Attached.
func NewLibrary(ctx context.Context, opts Options, store *attach.Store) (*Library, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Limits = opts.Limits.withDefaults()
	l := &Library{opts: opts, store: store, memos: make([]*memo.Memo, len(opts.Roots)), unsaved: make([]bool, len(opts.Roots))}
	for i, r := range opts.Roots {
		l.memos[i] = l.remembered(r.Dir)
	}
	return l, l.Rescan(ctx)
}

// remembered returns the memo of a root from the index, or nil.
func (l *Library) remembered(root string) *memo.Memo {
	if l.opts.Index.Dir == "" {
		return nil
	}
	dir, err := filepath.Abs(root)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil // the scan reports it
	}
	m, err := l.opts.Index.Load(dir, l.opts.Limits.settings())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.opts.Logger.Info("the index of packs is made anew", "dir", dir, "err", err)
	}
	return m
}

// SaveIndex writes to [Options.Index], for the next start, the roots in which something
// was read since they were last written. It reports whether it wrote any. A server
// calls it when idle; if it fails, the next start takes longer. It does not wait for
// another process that writes the same file, and no scan waits for it. A root that it
// did not write, because ctx ended, another process had the lock or there was an error,
// is left for the next call.
func (l *Library) SaveIndex(ctx context.Context) (wrote bool, err error) {
	if l.opts.Index.Dir == "" {
		return false, nil
	}
	l.saving.Lock()
	defer l.saving.Unlock()
	var errs []error
	tried := false
	for i := range l.opts.Roots {
		m := l.takeUnsaved(i)
		if m == nil {
			continue
		}
		done, err := false, ctx.Err()
		if err == nil {
			tried = true
			done, err = l.opts.Index.Save(m, l.opts.Limits.settings())
		}
		wrote = wrote || done
		errs = append(errs, err)
		if !done {
			l.scanning.Lock()
			l.unsaved[i] = true
			l.scanning.Unlock()
		}
		if ctx.Err() != nil {
			return wrote, errors.Join(errs...)
		}
	}
	if tried && !l.swept {
		l.swept = true
		l.opts.Index.Sweep(time.Now())
	}
	return wrote, errors.Join(errs...)
}

// LoadWords returns what SaveWords wrote last for the same roots, perhaps in another
// process and about other packs, or an error.
func (l *Library) LoadWords() (string, error) {
	if l.opts.Index.Dir == "" {
		return "", fs.ErrNotExist
	}
	return l.opts.Index.LoadWords(l.Roots())
}

// SaveWords writes to [Options.Index], for the next start, what queries need. It does
// nothing if there is no Index, or while another process writes there.
func (l *Library) SaveWords(data []byte) error {
	if l.opts.Index.Dir == "" {
		return nil
	}
	_, err := l.opts.Index.SaveWords(l.Roots(), data)
	return err
}

// takeUnsaved returns the memo of a root that has to be written, and marks the root as
// saved. It returns nil if there is nothing to write.
func (l *Library) takeUnsaved(i int) *memo.Memo {
	l.scanning.Lock()
	defer l.scanning.Unlock()
	m, unsaved := l.memos[i], l.unsaved[i]
	l.unsaved[i] = false
	if !unsaved || m.IsEmpty() || !m.Lasts {
		return nil
	}
	return m // immutable, so it can be written without the lock
}

// Catalog returns the current packs. It checks only what people attached and detached;
// see [Library.Refresh] for changes in the folders. It does not wait for a scan in
// another goroutine.
func (l *Library) Catalog(ctx context.Context) *Catalog {
	l.mu.Lock()
	current, fresh := l.catalog, l.store.Version().Equal(l.version)
	l.mu.Unlock()
	if fresh {
		return current
	}
	if !l.scanning.TryLock() {
		return l.meanwhile()
	}
	defer l.scanning.Unlock()
	if !l.isFresh() { // another goroutine may have been faster
		if _, err := l.scan(ctx, map[string]bool{}); err != nil {
			l.opts.Logger.Debug("the packs were not scanned again", "err", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.catalog
}

// meanwhile returns the packs of the last scan, with what is attached now.
func (l *Library) meanwhile() *Catalog {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.store.Version()
	switch {
	case now.Equal(l.version):
		return l.catalog
	case l.between != nil && l.betweenOf == l.catalog && now.Equal(l.betweenVersion):
		return l.between
	}
	set, err := l.store.Load()
	if err != nil {
		set = attach.Set{} // the next scan reports why
	}
	l.between, l.betweenOf, l.betweenVersion = l.catalog.stored(set), l.catalog, now
	return l.between
}

// isFresh reports whether the Catalog matches what is attached now.
func (l *Library) isFresh() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store.Version().Equal(l.version)
}

// Rescan scans all roots again and reads what changed. It fails if ctx ended, or if
// the process ran out of descriptors or memory. Then the Catalog stays as it was.
func (l *Library) Rescan(ctx context.Context) error {
	_, err := l.Refresh(ctx, nil)
	return err
}

// Refresh is [Library.Rescan] for callers that know where something may have changed.
// dirs are absolute, with symlinks resolved, as [Library.Dirs] yields them; nil means
// anywhere. It reports whether there is a new Catalog now. That is so when anything
// about a pack differs, or its entry document or a tool file was written. After an
// error, the next Refresh scans everything.
func (l *Library) Refresh(ctx context.Context, dirs []string) (changed bool, err error) {
	l.scanning.Lock()
	defer l.scanning.Unlock()
	var touched map[string]bool
	if dirs != nil && !l.missed {
		touched = make(map[string]bool, len(dirs))
		for _, d := range dirs {
			touched[d] = true
		}
	}
	changed, err = l.scan(ctx, touched)
	l.missed, l.stuck = err != nil, 0
	return changed, err
}

// ReadOn reads some of the documents that the last scan left unread for lack of time:
// as many as one full scan reads. It reports whether there is a new Catalog now, and
// whether another call would read more. It is meant for idle times.
func (l *Library) ReadOn(ctx context.Context) (changed, more bool, err error) {
	l.scanning.Lock()
	defer l.scanning.Unlock()
	before := l.unread()
	if before == 0 || before == l.stuck {
		return false, false, nil
	}
	changed, err = l.scan(ctx, nil)
	if l.missed = err != nil; l.missed {
		return false, false, err
	}
	after := l.unread()
	if after >= before { // linked documents, for example, are read again by each scan
		l.stuck = after
	}
	return changed, after > 0 && after != l.stuck, nil
}

// unread returns how many documents the last scan left unread. The caller holds
// scanning.
func (l *Library) unread() (n int) {
	for _, m := range l.memos {
		if m != nil {
			n += m.Unread
		}
	}
	return n
}

// Dirs yields every directory below the roots that the last scan looked at, absolute,
// with symlinks resolved. Only changes in these can affect a pack. The Library must not
// be used during the iteration.
func (l *Library) Dirs() iter.Seq[string] {
	return func(yield func(string) bool) {
		l.scanning.Lock()
		defer l.scanning.Unlock()
		for _, m := range l.memos {
			if m == nil {
				continue
			}
			for dir := range m.Dirs() {
				if !yield(dir) {
					return
				}
			}
		}
	}
}

// Concerns reports whether writing to a file of this name, below a root, can affect a
// pack. Links, and documents that the configuration names, can depend on any file.
func (l *Library) Concerns(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.anyFile || byname.IsDocument(name) || byname.IsToolFile(name) || byname.IsManifest(name)
}

// Roots returns the directories of the roots as they were given, including missing
// ones.
func (l *Library) Roots() []string {
	var dirs []string
	for _, r := range l.opts.Roots {
		dirs = append(dirs, r.Dir)
	}
	return dirs
}

// Files returns the file with attached and detached packs, if a store was given. Like
// the roots, it is an input of the Catalog.
func (l *Library) Files() []string {
	if l.store == nil {
		return nil
	}
	return []string{l.store.Path()}
}

// scan makes a new Catalog. The caller holds scanning.
func (l *Library) scan(ctx context.Context, touched map[string]bool) (changed bool, err error) {
	opts := l.opts
	opts.Attached = attach.Set{}
	l.mu.Lock()
	opts.whole = l.catalog != nil // an incomplete first scan is better than none
	l.mu.Unlock()
	now := l.store.Version() // before Load, so that a change in between is noticed next time
	if now.Equal(l.version) {
		if c, memos, ok := l.rescanEdited(ctx, opts, touched); ok {
			return l.replace(c, memos, now), nil
		}
	}
	var refused error
	if l.store != nil {
		opts.Attached, refused = l.store.Load()
	}
	c, memos, err := rescan(ctx, opts, l.memos, touched)
	if err != nil {
		return false, err
	}
	if refused != nil {
		l.opts.Logger.Warn("the file of attached packs was not used", "err", refused)
		d := diag.Diagnostic{
			Code: CodeAttachRefused, Severity: diag.Error, File: l.store.Path(), Message: refused.Error(),
			Hint: "look at the file; remove it to begin with nothing attached",
		}
		if e, ok := errors.AsType[*attach.RefusedError](refused); ok {
			d.Message = e.Reason
		}
		c.problems = append(c.problems, d)
	}
	return l.replace(c, memos, now), nil
}

// replace installs the result of a scan. now is the version of the store's file that the
// scan used. It reports whether there is a new Catalog now. The caller holds scanning.
func (l *Library) replace(c *Catalog, memos []*memo.Memo, now attach.Version) (changed bool) {
	for i, m := range memos {
		l.unsaved[i] = l.unsaved[i] || m != l.memos[i] && m.Reads > 0 && m.Fresh
	}
	l.memos = memos
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = now
	l.between, l.betweenOf = nil, nil
	l.anyFile = slices.ContainsFunc(memos, func(m *memo.Memo) bool { return m.Always })
	if l.catalog != nil && l.catalog.same(c) {
		return false
	}
	l.catalog = c
	return true
}
