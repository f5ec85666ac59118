package packs

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// CodeAttachRefused: error: the file of attached packs was not used.
const CodeAttachRefused = "attach-refused"

// A Library holds the current [Catalog] of some roots, and makes a new one when
// a person attached or detached a pack, in whatever process, and when it is told
// that something may have changed. Safe for concurrent use: who asks for the
// Catalog does not wait for a scan, except the first.
type Library struct {
	opts  Options
	store *attach.Store // nil: nothing is ever attached by a person

	scanning sync.Mutex // held for a whole scan
	memos    []*memo    // what the last scan remembers, one for each root; guarded by scanning
	unsaved  []bool     // of each: since it was last saved, something was read; guarded by scanning
	stuck    int        // how many documents are left of which another look reads none; guarded by scanning
	missed   bool       // what the next Refresh is told is not all there is to look at; guarded by scanning

	saving sync.Mutex // held for a whole SaveIndex
	swept  bool       // guarded by saving

	mu      sync.Mutex
	stamp   stamp    // of the store's file, when catalog was made
	catalog *Catalog // replaced whole, never modified
	anyFile bool     // whatever a file is called, a pack may depend on it

	// between is what catalog became when what is attached changed during a scan;
	// of which catalog, and of which file it is. nil: nobody asked.
	between, betweenOf *Catalog
	betweenStamp       stamp
}

// stamp is how a file looked. A file that is put in place whole, as the store's
// is, differs in at least one of them.
type stamp struct {
	modified time.Time
	size     int64
	info     os.FileInfo // compared with os.SameFile
}

func (a stamp) equal(b stamp) bool {
	if a.info == nil || b.info == nil {
		return a.info == nil && b.info == nil
	}
	return a.modified.Equal(b.modified) && a.size == b.size && os.SameFile(a.info, b.info)
}

// NewLibrary scans the roots of opts, with the help of opts.Index. What a person
// attached is taken from store, and opts.Attached is ignored.
func NewLibrary(ctx context.Context, opts Options, store *attach.Store) (*Library, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Limits = opts.Limits.withDefaults()
	l := &Library{opts: opts, store: store, memos: make([]*memo, len(opts.Roots)), unsaved: make([]bool, len(opts.Roots))}
	for i, r := range opts.Roots {
		l.memos[i] = l.remembered(r.Dir)
	}
	return l, l.Rescan(ctx)
}

// remembered returns what the index has of a root; nil for nothing.
func (l *Library) remembered(root string) *memo {
	if l.opts.Index.Dir == "" {
		return nil
	}
	dir, err := filepath.Abs(root)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil // the scan says what is wrong
	}
	m, err := l.opts.Index.load(dir, l.opts.Limits)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.opts.Logger.Info("the index of packs is made anew", "dir", dir, "err", err)
	}
	return m
}

// SaveIndex writes the roots in which something was read since they were last
// written to [Options.Index], for the next start, and reports whether it wrote any.
// Whoever serves calls it when there is nothing better to do; when it fails, the
// next start takes longer. It waits for nobody who writes the same, in another
// process, and nobody who scans waits for it. A root that was not written, since ctx
// ended, another process had the lock or there was an error, is the next one's work.
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
			done, err = l.opts.Index.save(m, l.opts.Limits)
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
		l.opts.Index.sweep(time.Now())
	}
	return wrote, errors.Join(errs...)
}

// takeUnsaved returns what is to be written of a root, and counts it as written; nil
// for nothing.
func (l *Library) takeUnsaved(i int) *memo {
	l.scanning.Lock()
	defer l.scanning.Unlock()
	m, unsaved := l.memos[i], l.unsaved[i]
	l.unsaved[i] = false
	if !unsaved || m.tree == "" || !m.lasts {
		return nil
	}
	return m // which never changes
}

// Catalog returns the packs as they are now. The only things it looks at are
// what persons attached and detached; see [Library.Refresh] for the rest. While
// somebody else looks at the folders, it does not wait for that.
func (l *Library) Catalog(ctx context.Context) *Catalog {
	l.mu.Lock()
	current, fresh := l.catalog, l.look().equal(l.stamp)
	l.mu.Unlock()
	if fresh {
		return current
	}
	if !l.scanning.TryLock() {
		return l.meanwhile()
	}
	defer l.scanning.Unlock()
	if !l.isFresh() { // somebody may have been faster
		if _, err := l.scan(ctx, map[string]bool{}); err != nil {
			l.opts.Logger.Debug("the packs were not scanned again", "err", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.catalog
}

// meanwhile returns the packs that the last scan found, as what is attached now
// makes them.
func (l *Library) meanwhile() *Catalog {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.look()
	switch {
	case now.equal(l.stamp):
		return l.catalog
	case l.between != nil && l.betweenOf == l.catalog && now.equal(l.betweenStamp):
		return l.between
	}
	set, err := l.store.Load()
	if err != nil {
		set = attach.Set{} // the next scan says why
	}
	l.between, l.betweenOf, l.betweenStamp = l.catalog.stored(set), l.catalog, now
	return l.between
}

// isFresh reports whether the Catalog is of what is attached now.
func (l *Library) isFresh() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.look().equal(l.stamp)
}

// Rescan looks at all roots again, and reads what changed. Its error is that ctx
// ended, or that there were no descriptors or no memory left to look with; then
// the Catalog stays what it was.
func (l *Library) Rescan(ctx context.Context) error {
	_, err := l.Refresh(ctx, nil)
	return err
}

// Refresh is [Library.Rescan] for whoever knows in which directories something
// may have changed: absolute, with symlinks resolved, as [Library.Dirs] has
// them; nil means that it may be anywhere. It reports whether the Catalog is
// another one now. That is so when anything about a pack differs, and when its
// entry document, or a file with tools, was written. After an error, the next one
// looks everywhere.
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

// ReadOn is a step of reading the documents for which the last look had no time: it
// reads as many as a look at everything does, and reports whether the Catalog is
// another one now, and whether the next step gets further. It is for whoever has
// nothing better to do.
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
	if after >= before { // links, for one, are read anew at each look
		l.stuck = after
	}
	return changed, after > 0 && after != l.stuck, nil
}

// unread is how many documents the last scan left. The caller holds scanning.
func (l *Library) unread() (n int) {
	for _, m := range l.memos {
		if m != nil {
			n += m.unread
		}
	}
	return n
}

// Dirs yields every directory below the roots that was looked at by the last
// scan, absolute, with symlinks resolved: those in which a change may concern a
// pack. The Library must not be used before the last was yielded.
func (l *Library) Dirs() iter.Seq[string] {
	return func(yield func(string) bool) {
		l.scanning.Lock()
		defer l.scanning.Unlock()
		for _, m := range l.memos {
			if m == nil {
				continue
			}
			for dir := range m.dirs() {
				if !yield(dir) {
					return
				}
			}
		}
	}
}

// Concerns reports whether what is written to a file of this name, below a root,
// can make a pack another one. Links, and documents that the configuration names,
// can depend on any file.
func (l *Library) Concerns(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.anyFile || isDocument(name) || isToolFile(name) || isManifest(name)
}

// Roots returns the directories of the roots as they were given, those that are
// not there too.
func (l *Library) Roots() []string {
	var dirs []string
	for _, r := range l.opts.Roots {
		dirs = append(dirs, r.Dir)
	}
	return dirs
}

// Files returns the file in which persons attach and detach packs, if there is
// to be one: like the roots, it is what a Catalog is made from.
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
	opts.whole = l.catalog != nil // the first is as good as it gets
	l.mu.Unlock()
	now := l.look() // before Load: a change in between is seen next time
	if now.equal(l.stamp) {
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

// replace takes what a scan found, of what was attached at a stamp. It reports whether
// the Catalog is another one now. The caller holds scanning.
func (l *Library) replace(c *Catalog, memos []*memo, now stamp) (changed bool) {
	for i, m := range memos {
		l.unsaved[i] = l.unsaved[i] || m != l.memos[i] && m.reads > 0 && m.fresh
	}
	l.memos = memos
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamp = now
	l.between, l.betweenOf = nil, nil
	l.anyFile = slices.ContainsFunc(memos, func(m *memo) bool { return m.always })
	if l.catalog != nil && l.catalog.same(c) {
		return false
	}
	l.catalog = c
	return true
}

func (l *Library) look() stamp {
	if l.store == nil {
		return stamp{}
	}
	info, err := os.Lstat(l.store.Path())
	if err != nil {
		return stamp{}
	}
	return stamp{modified: info.ModTime(), size: info.Size(), info: info}
}
