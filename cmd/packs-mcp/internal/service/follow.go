package service

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/watch"
)

// saveEvery is the least time between two writes of the pack index while a
// server runs. The index is several megabytes for some thousand packs, people
// may edit packs all day, and an index that is some minutes old costs the next
// start only what changed since. A server also writes it when it ends.
const saveEvery = 10 * time.Minute

// saveWait is how long an ending server goes on to the index of another folder
// of packs: its client may kill it if it takes long.
const saveWait = 2 * time.Second

// A keeper makes a server notice edits in the folders of packs, and does
// deferred work while nothing changes there.
type keeper struct {
	library indexed
	changed func(context.Context)            // tells all chats about what was read; see [server.Server.Refresh]
	ready   func(context.Context) (did bool) // builds what queries need: see [server.Server.Ready]
	logger  *slog.Logger
	watcher *watch.Watcher
	saved   time.Time // when writing the index was last tried; zero: not yet
}

// indexed is the part of [packs.Library] that deferred work needs.
type indexed interface {
	ReadOn(ctx context.Context) (changed, more bool, err error)
	SaveIndex(ctx context.Context) (wrote bool, err error)
}

// Prepare makes the index for the first query, before a client asks it.
func (s *Service) Prepare(ctx context.Context, logger *slog.Logger) {
	if err := s.Server.Prepare(ctx, s.Library); err != nil {
		logger.Info("the index for queries was not written, so the next start takes longer", "err", err)
	}
}

// Watch begins to follow the folders of packs.
func (s *Service) Watch(logger *slog.Logger) {
	s.keeper = &keeper{library: s.Library, changed: s.changed, ready: s.Server.Ready, logger: logger}
	s.keeper.watcher = watch.Start(thrifty{s.Library}, watch.Options{
		Changed: s.changed, Unchanged: s.Server.Refresh, Idle: s.keeper.idle, Logger: logger,
	})
}

// thrifty is a library that returns memory to the system after each full scan. A
// scan happens every half minute and uses several times the memory that the
// packs keep.
type thrifty struct{ *packs.Library }

func (t thrifty) Refresh(ctx context.Context, dirs []string) (changed bool, err error) {
	changed, err = t.Library.Refresh(ctx, dirs)
	if dirs == nil {
		giveBackMuch()
	}
	return changed, err
}

// changed tells clients and the log what changed about the packs.
func (s *Service) changed(ctx context.Context) {
	s.reporter.report(s.Library.Catalog(ctx))
	s.Server.Refresh(ctx)
}

// Unwatch ends what Watch began. It writes what was read since the last write, even
// if the server ended before it watched: clients that ask once and exit start a
// server each time.
func (s *Service) Unwatch(logger *slog.Logger) {
	k := s.keeper
	if k == nil {
		k = &keeper{library: s.Library, logger: logger}
	} else {
		k.watcher.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveWait)
	defer cancel()
	k.save(ctx)
}

// idle does the next step of deferred work. An edit meanwhile waits only for
// this step.
func (k *keeper) idle(ctx context.Context) (more bool) {
	changed, more, err := k.library.ReadOn(ctx)
	if err != nil && ctx.Err() == nil {
		k.logger.Warn("could not read the remaining documents; will try again", "err", err)
	}
	if changed {
		k.changed(ctx)
	}
	if more {
		return true
	}
	if k.saved.IsZero() || time.Since(k.saved) >= saveEvery {
		if k.save(ctx) {
			k.saved = time.Now()
			return true
		}
	}
	if k.ready(ctx) {
		return true
	}
	// A scan uses several times the memory that the packs keep.
	debug.FreeOSMemory()
	return false
}

// save writes what was read for the next start. It reports whether there was
// something to write.
func (k *keeper) save(ctx context.Context) bool {
	wrote, err := k.library.SaveIndex(ctx)
	if err != nil && !errors.Is(err, context.Canceled) { // the watcher was closed, and Unwatch writes the rest
		k.logger.Info("the index of packs was not written, so the next start takes longer", "err", err)
	}
	return wrote || err != nil
}

// muchMemory is the heap size from which it pays to return unused memory before the
// first answer: that of some thousand packs.
const muchMemory = 16 << 20

// giveBackMuch returns unused memory to the system if there may be much of it:
// reading packs uses several times the memory that they keep.
func giveBackMuch() {
	// Not runtime.ReadMemStats, which stops everything for half a millisecond.
	held := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(held)
	var sum uint64
	for _, s := range held {
		sum += s.Value.Uint64()
	}
	if sum >= muchMemory {
		debug.FreeOSMemory()
	}
}
