package chains

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/store"
)

// A watch writes checkpoints. All servers do that; who is first spares the others.
type watch struct {
	o      Options
	heads  map[string]head   // of each chain, as the checkpoints that were seen and the chains themselves have them
	stamps map[string]uint64 // of the chains that were looked at
	pos    uint64            // of the last checkpoint that was seen; 0: none
	number int64             // of that
	prev   string            // its hash
	since  time.Time         // when it was seen
	failed bool              // the last round failed, which was logged
	lost   map[string]bool   // chains that are shorter than they were, which was logged
}

func newWatch(o Options) *watch {
	return &watch{o: o, heads: make(map[string]head), stamps: make(map[string]uint64), prev: zeroHash, lost: make(map[string]bool)}
}

// run writes a checkpoint from time to time, until ctx is done.
func (w *watch) run(ctx context.Context) {
	for {
		// Not all at the same moment.
		wait := w.o.Every/2 + rand.N(w.o.Every/2+1)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		err := w.round(ctx, false)
		if err != nil && ctx.Err() == nil && !w.failed {
			w.o.Logger.Error("the audit log gets no checkpoint; logged only once", "err", err)
		}
		if err == nil && w.failed {
			w.o.Logger.Info("the audit log gets checkpoints again")
		}
		w.failed = err != nil
	}
}

// last writes a checkpoint that has the end of one chain.
func (w *watch) last(chain string) error {
	ctx := context.Background()
	const tries = 5
	var err error
	for range tries {
		_, block, lost := w.o.Store.Last(ctx, chain)
		if errors.Is(lost, store.ErrNotFound) {
			return nil
		}
		if lost != nil {
			return lost
		}
		s, lost := lastSeal(block, w.o.Keys.public, chain)
		if lost != nil {
			return lost
		}
		if err = w.round(ctx, true); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
		if w.heads[chain].Seq >= s.Seq {
			return nil
		}
	}
	return err
}

// round writes a checkpoint if a chain has grown since the last one and, unless it is
// the last round, nobody has just written one.
func (w *watch) round(ctx context.Context, last bool) error {
	if err := w.follow(ctx); err != nil {
		return err
	}
	if !last && w.o.Now().Sub(w.since) < w.o.Every/2 {
		return nil
	}
	all, err := w.o.Store.Chains(ctx)
	if err != nil {
		return err
	}
	grown, looked := make(map[string]head), make(map[string]uint64)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == checkpoints || w.stamps[name] == all[name] {
			continue
		}
		h, err := w.headOf(ctx, name)
		if errors.Is(err, store.ErrAway) {
			return err
		}
		looked[name] = all[name]
		switch known := w.heads[name]; {
		case err != nil && !errors.Is(err, errUnsealed) && !errors.Is(err, store.ErrNotFound):
			w.o.Logger.Error("a chain of the audit log has what no replica wrote", "chain", name, "err", err)
		case err == nil && h.Seq > known.Seq:
			grown[name] = h
		case err == nil && h.Seq < known.Seq && !w.lost[name]:
			w.lost[name] = true
			w.o.Logger.Error("a chain of the audit log has lost entries", "chain", name, "had", known.Seq, "has", h.Seq)
		}
	}
	if len(grown) > 0 {
		if err := w.write(ctx, checkpoint{Heads: grown}); err != nil {
			return err
		}
	}
	maps.Copy(w.stamps, looked)
	return nil
}

// headOf returns the newest entry of a chain, as its last seal names it.
func (w *watch) headOf(ctx context.Context, chain string) (head, error) {
	_, block, err := w.o.Store.Last(ctx, chain)
	if err != nil {
		return head{}, err
	}
	s, err := lastSeal(block, w.o.Keys.public, chain)
	return head{s.Seq, s.Last}, err
}

// follow takes the checkpoints that others have written meanwhile. At the beginning it
// takes only the newest: the first checkpoint of a server names every chain.
func (w *watch) follow(ctx context.Context) error {
	if w.pos == 0 {
		pos, block, err := w.o.Store.Last(ctx, checkpoints)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return w.take(pos, block)
	}
	return w.o.Store.Read(ctx, checkpoints, w.pos, w.take)
}

// take takes a checkpoint from the store.
func (w *watch) take(pos uint64, block []byte) error {
	var c checkpoint
	line := block[:max(0, len(block)-1)]
	if err := unsign(line, w.o.Keys.public, &c); err != nil {
		return fmt.Errorf("the checkpoint at position %d of the store was written by no replica: %w", pos, err)
	}
	w.seen(pos, line, c)
	return nil
}

func (w *watch) seen(pos uint64, line []byte, c checkpoint) {
	w.pos, w.number, w.prev, w.since = pos, c.Number, hashOf(line), w.o.Now()
	for name, h := range c.Heads {
		if h.Seq > w.heads[name].Seq {
			w.heads[name] = h
		}
	}
}

// write appends a checkpoint, unless somebody else did so first.
func (w *watch) write(ctx context.Context, c checkpoint) error {
	c.Number, c.Prev, c.Time, c.By = w.number+1, w.prev, w.o.Now().UTC(), w.o.Server
	block := w.o.Keys.sign(c)
	pos, err := w.o.Store.Append(ctx, checkpoints, w.pos, block)
	if err != nil {
		return err
	}
	w.seen(pos, block[:len(block)-1], c)
	return nil
}
