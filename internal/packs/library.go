package packs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// CodeAttachRefused: error: the file of attached packs was not used.
const CodeAttachRefused = "attach-refused"

// A Library holds the current [Catalog] of some roots, and makes a new one
// when a person attached or detached a pack, in whatever process. Safe for
// concurrent use.
type Library struct {
	opts  Options
	store *attach.Store // nil: nothing is ever attached by a person

	mu      sync.Mutex
	stamp   stamp    // of the store's file, when catalog was made
	catalog *Catalog // replaced whole, never modified
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

// NewLibrary scans the roots of opts. What a person attached is taken from
// store, and opts.Attached is ignored.
func NewLibrary(ctx context.Context, opts Options, store *attach.Store) (*Library, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.loader = &tools.Loader{} // its schemas are compiled once
	l := &Library{opts: opts, store: store}
	return l, l.Rescan(ctx)
}

// Catalog returns the packs as they are now. The only things it looks at are
// what persons attached and detached; see [Library.Rescan] for the rest.
func (l *Library) Catalog(ctx context.Context) *Catalog {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.look().equal(l.stamp) {
		if err := l.scan(ctx); err != nil {
			l.opts.Logger.Debug("the packs were not scanned again", "err", err)
		}
	}
	return l.catalog
}

// Rescan looks through all roots again. Its only error is that ctx ended, and
// then the Catalog stays what it was.
func (l *Library) Rescan(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.scan(ctx)
}

// scan makes a new Catalog. The caller holds the lock.
func (l *Library) scan(ctx context.Context) error {
	opts := l.opts
	opts.Attached = attach.Set{}
	now := l.look() // before Load: a change in between is seen next time
	var refused error
	if l.store != nil {
		opts.Attached, refused = l.store.Load()
	}
	c, err := Scan(ctx, opts)
	if err != nil {
		return err
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
	l.stamp, l.catalog = now, c
	return nil
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
