package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
)

// A Mirror is a copy in memory of a store's entries, which follows the changes. It is
// safe for concurrent use. Make one with [Follow].
type Mirror struct {
	Store
	logger *slog.Logger
	stop   context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	entries map[string]Entry
	seen    uint64                  // every change up to this revision is in entries
	changed chan struct{}           // closed and replaced when seen grows
	again   context.CancelCauseFunc // ends the watch, so that the store is read again
	feeds   []*Feed

	syncing chan struct{} // holds a token during a round
	round   *round        // the next one, which a caller can still join; mu guards it
}

// A round is one mark that brings a mirror up to date for all callers that joined
// it.
type round struct {
	done chan struct{} // closed when err is set
	err  error
}

// Follow returns a mirror that has all entries of a store. The mirror closes the store,
// even if Follow returns an error.
func Follow(ctx context.Context, s Store, logger *slog.Logger) (*Mirror, error) {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	m := &Mirror{
		Store: s, logger: logger, stop: stop, ended: make(chan struct{}),
		entries: make(map[string]Entry), changed: make(chan struct{}), syncing: make(chan struct{}, 1),
	}
	go m.follow(following)
	if err := m.Sync(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close stops following and closes the store.
func (m *Mirror) Close() {
	m.stop()
	<-m.ended
	m.Store.Close()
}

// retryEvery is how often a mirror tries to follow a store that is away.
const retryEvery = 200 * time.Millisecond

func (m *Mirror) follow(ctx context.Context) {
	defer close(m.ended)
	away := false
	for ctx.Err() == nil {
		fresh := make(map[string]Entry)
		synced, newest := false, uint64(0)
		watching, stop := context.WithCancelCause(ctx)
		m.mu.Lock()
		m.again = stop
		m.mu.Unlock()
		err := m.Watch(watching, func(c Change) {
			newest = max(newest, c.Rev)
			switch {
			case c.Synced:
				synced = true
				if away {
					m.logger.Info("the store is back")
					away = false
				}
				m.replace(watching, fresh, newest)
			case synced:
				m.apply(watching, c)
			case c.Gone:
				delete(fresh, c.Key)
			default:
				fresh[c.Key] = c.Entry
			}
		})
		if watching.Err() != nil {
			err = context.Cause(watching)
		}
		stop(nil)
		if ctx.Err() != nil {
			return
		}
		if !away {
			m.logger.Error("the store cannot be followed; what needs it is denied", "err", err)
			away = true
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
		}
	}
}

// replace replaces all entries. Their revisions may be lower than earlier ones if the
// store was set back.
func (m *Mirror) replace(watching context.Context, now map[string]Entry, newest uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if watching.Err() != nil {
		return
	}
	was := m.entries
	m.entries, m.seen = maps.Clone(now), newest
	for key, e := range now {
		if had, ok := was[key]; !ok || had.Rev != e.Rev {
			m.changedKey(key)
		}
	}
	for key := range was {
		if _, ok := now[key]; !ok {
			m.changedKey(key)
		}
	}
	m.wake()
}

func (m *Mirror) apply(watching context.Context, c Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if watching.Err() != nil {
		return
	}
	if c.Gone {
		delete(m.entries, c.Key)
	} else {
		m.entries[c.Key] = c.Entry
	}
	m.changedKey(c.Key)
	m.seen = max(m.seen, c.Rev)
	m.wake()
}

// errSetBack is the reason for reading a store again that reuses revisions.
var errSetBack = errors.New("the store was set back, as from a backup; it is read anew")

// startOver forgets the entries, so that they are read again.
func (m *Mirror) startOver() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again(errSetBack)
	for key := range m.entries {
		m.changedKey(key)
	}
	m.entries, m.seen = make(map[string]Entry), 0
}

// wake wakes callers that wait for a revision. The caller holds mu.
func (m *Mirror) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// All returns the mirror's entries whose keys have a prefix, by key.
func (m *Mirror) All(prefix string) map[string]Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]Entry)
	for key, e := range m.entries {
		if strings.HasPrefix(key, prefix) {
			all[key] = e
		}
	}
	return all
}

// Sync returns when the mirror has everything that was written before the call. It asks
// the engine for a mark and waits until the mirror has it, once for all concurrent callers.
func (m *Mirror) Sync(ctx context.Context) error {
	m.mu.Lock()
	r := m.round
	joined := r != nil
	if !joined {
		r = &round{done: make(chan struct{})}
		m.round = r
	}
	m.mu.Unlock()
	if !joined {
		go m.carryOut(r)
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return away(ctx.Err())
	}
}

// carryOut does a round, after the previous one.
func (m *Mirror) carryOut(r *round) {
	m.syncing <- struct{}{}
	defer func() { <-m.syncing }()
	m.mu.Lock()
	m.round = nil // later callers must not join: the mark may come before what they wait for
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), opTime)
	defer cancel()
	r.err = m.sync(ctx)
	close(r.done)
}

func (m *Mirror) sync(ctx context.Context) error {
	m.mu.Lock()
	had := m.seen
	m.mu.Unlock()
	rev, back, err := m.Mark(ctx, had)
	if err != nil {
		return err
	}
	if back {
		// The mirror's entries are from a different history, which says nothing about later
		// writes.
		m.startOver()
	}
	return m.Reach(ctx, rev)
}

// Reach returns when the mirror has every change up to a revision, such as that of a write
// which just succeeded. It asks the engine for nothing.
func (m *Mirror) Reach(ctx context.Context, rev uint64) error {
	for {
		m.mu.Lock()
		seen, changed := m.seen, m.changed
		m.mu.Unlock()
		if seen >= rev {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the store's changes: %w", away(ctx.Err()))
		}
	}
}
