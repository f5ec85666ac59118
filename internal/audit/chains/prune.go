package chains

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/store"
)

// ErrUnverified means that an export was changed, or is not of this store.
var ErrUnverified = errors.New("nothing was removed")

// Pruned describes what [Prune] removed.
type Pruned struct {
	Chains  int // of which something was removed
	Entries int64
	Whole   int // chains that are gone except for their heads in the checkpoints
}

// Prune removes entries from a store that are older than a time and are in an export
// that verifies. First it appends a checkpoint that has the heads of all chains, and
// says up to which entry each chain may be missing. A chain keeps its last block,
// unless its server has stopped.
func Prune(ctx context.Context, s store.Store, keys Keys, dir string, before, now time.Time) (Pruned, error) {
	v := &verifier{
		dir: dir, keys: keys.Public(), used: make(map[string]bool), claims: make(map[string]map[int64]claim), pruned: make(map[string]head),
		before: before, cuts: make(map[string]head), ends: make(map[string]sealed),
	}
	if err := v.all(""); err != nil {
		return Pruned{}, fmt.Errorf("verifying the export %q: %w", dir, err)
	}
	if !v.report.OK {
		return Pruned{}, fmt.Errorf("%w: the export %q is not as it was written", ErrUnverified, dir)
	}
	out, err := prune(ctx, s, keys, v, now)
	if err != nil {
		return Pruned{}, fmt.Errorf("pruning the audit log: %w", err)
	}
	return out, nil
}

func prune(ctx context.Context, s store.Store, keys Keys, v *verifier, now time.Time) (Pruned, error) {
	var out Pruned
	cuts := make(map[string]head)   // as the store will be
	upTo := make(map[string]uint64) // positions
	for _, name := range slices.Sorted(maps.Keys(v.cuts)) {
		cut, pos, whole, err := cutOf(ctx, s, keys, v, name)
		if err != nil {
			return Pruned{}, err
		}
		if pos == 0 {
			continue
		}
		cuts[name], upTo[name] = cut, pos
		out.Chains++
		out.Entries += cut.Seq - v.pruned[name].Seq
		if whole {
			out.Whole++
		}
	}
	if len(cuts) == 0 {
		return Pruned{}, nil
	}
	last, err := record(ctx, s, keys, v, cuts, now)
	if err != nil {
		return Pruned{}, err
	}
	for name, pos := range upTo {
		if err := s.Trim(ctx, name, pos); err != nil {
			return Pruned{}, err
		}
	}
	return out, s.Trim(ctx, checkpoints, last)
}

// cutOf returns the entry of a chain up to which it is removed, and its position in the
// store, which is 0 if nothing is removed.
func cutOf(ctx context.Context, s store.Store, keys Keys, v *verifier, name string) (cut head, pos uint64, whole bool, err error) {
	end, _, err := s.Last(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return head{}, 0, false, nil
	}
	if err != nil {
		return head{}, 0, false, err
	}
	limit := v.cuts[name]
	over := v.ends[name].Seq == limit.Seq // its server has stopped, and the whole chain is old
	done := errors.New("done")
	err = s.Read(ctx, name, 0, func(at uint64, block []byte) error {
		sealed, err := lastSeal(block, keys.public, name)
		switch {
		case errors.Is(err, errUnsealed):
			return nil // a piece of a longer block
		case err != nil:
			return err
		case sealed.Seq > limit.Seq, at == end && !over:
			return done
		}
		cut, pos, whole = head{sealed.Seq, sealed.Last}, at, at == end
		return nil
	})
	if err != nil && !errors.Is(err, done) {
		return head{}, 0, false, err
	}
	return cut, pos, whole, nil
}

// record appends the checkpoint of a pruning, and returns the position of the one before
// it.
func record(ctx context.Context, s store.Store, keys Keys, v *verifier, cuts map[string]head, now time.Time) (last uint64, err error) {
	const tries = 5
	for range tries {
		w := newWatch(Options{Store: s, Keys: keys, Server: "prune", Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
		same := false
		pruned := maps.Clone(v.pruned)
		err := s.Read(ctx, checkpoints, 0, func(pos uint64, block []byte) error {
			if err := w.take(pos, block); err != nil {
				return err
			}
			same = same || w.prev == v.report.Last
			return nil
		})
		if err != nil {
			return 0, err
		}
		if !same {
			return 0, fmt.Errorf("%w: the last checkpoint of the export is not in the store; export it again", ErrUnverified)
		}
		maps.Copy(pruned, cuts)
		last := w.pos
		err = w.write(ctx, checkpoint{Whole: true, Heads: w.heads, Pruned: pruned})
		if err == nil {
			return last, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return 0, err
		}
	}
	return 0, store.ErrConflict
}
