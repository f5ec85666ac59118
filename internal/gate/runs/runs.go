// Package runs has each run claimed in the store that replicas of a server share before
// it starts: of several claims of one answer, one succeeds. A run whose replica ended
// before it did is reported by another replica as cut, and never started again.
//
// It starts nothing, and it allows nothing.
package runs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

const (
	claimPrefix = "run."     // of the keys of claims
	alivePrefix = "replica." // of the keys by which replicas say that they are alive
	// aliveTime is how long a replica counts as alive that says nothing, by the clock of
	// the store.
	aliveTime = 12 * time.Second
	roundTime = 10 * time.Second // for one look at all claims
)

// A claim is the entry of one run.
type claim struct {
	Replica string `json:"replica"`
	State   state  `json:"state"`
	// Cut is the line that the log gets if the replica ends before the run does.
	Cut audit.Entry `json:"cut"`
}

type state string

const (
	running state = "running"
	ended   state = "ended"
	cut     state = "cut"
)

// Options configure [Claims].
type Options struct {
	Logger *slog.Logger
	// Keep is how long a claim is kept when its run has ended: as long as an answer
	// could come back that was used for it.
	Keep time.Duration

	alive time.Duration // 0 is aliveTime
}

// Claims are the claims of one replica. They are safe for concurrent use. Make them with
// [Open].
type Claims struct {
	o       Options
	mirror  *store.Mirror
	replica string // a random name
	stop    context.CancelFunc
	stopped chan struct{} // closed when watching ended

	mu   sync.Mutex
	mine map[string]bool // :: key → a run of this replica that has not ended

	// Only the goroutine of watch uses these, once that runs.
	rev     uint64               // of the own sign of life
	missing map[string]time.Time // :: replica with claims → since when it gives no sign of life
}

// Open says that a replica is alive, and returns its claims. The caller calls Watch soon,
// and Close at the end. The mirror must be of a sealed store: anybody who can write a claim
// can keep a run from starting.
func Open(ctx context.Context, m *store.Mirror, o Options) (*Claims, error) {
	if o.alive <= 0 {
		o.alive = aliveTime
	}
	c := &Claims{
		o: o, mirror: m, replica: strings.ToLower(rand.Text()[:16]),
		mine: make(map[string]bool), missing: make(map[string]time.Time),
	}
	if err := c.live(ctx); err != nil {
		return nil, fmt.Errorf("telling the other replicas of this one: %w", err)
	}
	return c, nil
}

// Watch says again and again that this replica is alive, and calls report with the line of
// each run that was cut, until Close. It does not wait.
func (c *Claims) Watch(report func(audit.Entry) error) {
	ctx, stop := context.WithCancel(context.Background())
	c.stop, c.stopped = stop, make(chan struct{})
	go c.watch(ctx, report)
}

// Close ends the claims. Runs that go on are reported by another replica as cut.
func (c *Claims) Close() {
	if c.stop != nil {
		c.stop()
		<-c.stopped
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.mirror.Delete(ctx, alivePrefix+c.replica, c.rev) // otherwise it expires
}

// Claim claims a run. id is of the answer or of the decision that it rests on. It reports
// false if the run was claimed before. cutLine is the line that the log of another replica
// gets if this one ends before ended is called. An error means that nobody knows whether the
// run is claimed; it must not start.
func (c *Claims) Claim(ctx context.Context, id string, cutLine audit.Entry) (end func(), claimed bool, err error) {
	key := claimPrefix + id
	mine := claim{Replica: c.replica, State: running, Cut: cutLine}
	value, err := strictjson.Encode(&mine)
	if err != nil {
		return nil, false, fmt.Errorf("claiming a run: %w", err)
	}
	c.mu.Lock()
	c.mine[key] = true
	c.mu.Unlock()
	rev, err := c.mirror.Put(ctx, key, value, 0, 0)
	if err != nil {
		c.forget(key) // if it was claimed all the same, tidy ends it
	}
	switch {
	case errors.Is(err, store.ErrConflict):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("claiming a run: %w", err)
	}
	return func() { c.end(key, mine, rev) }, true, nil
}

func (c *Claims) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mine, key)
}

// end says that a run of this replica has ended. The call's context may be over.
func (c *Claims) end(key string, mine claim, rev uint64) {
	mine.State = ended
	err := c.turn(context.Background(), key, mine, rev)
	c.forget(key)
	if err != nil {
		c.o.Logger.Warn("could not tell the other replicas that a run ended; will try again", "run", mine.Cut.Run, "err", err)
	}
}

// turn writes the state in which a claim is kept for a while.
func (c *Claims) turn(ctx context.Context, key string, of claim, rev uint64) error {
	of.Cut = audit.Entry{Run: of.Cut.Run}
	value, err := strictjson.Encode(&of)
	if err != nil {
		return err
	}
	_, err = c.mirror.Put(ctx, key, value, rev, c.o.Keep)
	return err
}

func (c *Claims) watch(ctx context.Context, report func(audit.Entry) error) {
	defer close(c.stopped)
	beat := time.NewTicker(c.o.alive / 4)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
		case <-ctx.Done():
			return
		}
		round, cancel := context.WithTimeout(ctx, roundTime)
		if err := c.live(round); err != nil && ctx.Err() == nil {
			c.o.Logger.Warn("the other replicas cannot be told that this one is alive", "err", err)
		} else if err := c.mirror.Sync(round); err == nil {
			c.tidy(round, report)
		}
		cancel()
	}
}

// live says that this replica is alive.
func (c *Claims) live(ctx context.Context) (err error) {
	key := alivePrefix + c.replica
	rev, err := c.mirror.Put(ctx, key, nil, c.rev, c.o.alive)
	if errors.Is(err, store.ErrConflict) {
		// It expired, or a write was carried out that we know nothing of.
		e, lost := c.mirror.Get(ctx, key)
		if lost != nil && !errors.Is(lost, store.ErrNotFound) {
			return lost
		}
		rev, err = c.mirror.Put(ctx, key, nil, e.Rev, c.o.alive)
	}
	if err == nil {
		c.rev = rev
	}
	return err
}

// tidy reports the runs of replicas that have given no sign of life for long, and ends the
// claims of this replica whose end could not be written. The mirror is up to date.
func (c *Claims) tidy(ctx context.Context, report func(audit.Entry) error) {
	now := time.Now()
	gone := make(map[string]time.Time)
	for key, e := range c.mirror.All(claimPrefix) {
		var of claim
		if err := json.Unmarshal(e.Value, &of); err != nil || of.State != running {
			continue
		}
		if of.Replica == c.replica {
			c.mu.Lock()
			goesOn := c.mine[key]
			c.mu.Unlock()
			if !goesOn {
				of.State = ended
				_ = c.turn(ctx, key, of, e.Rev) // otherwise the next round does
			}
			continue
		}
		if _, alive := c.mirror.Entry(alivePrefix + of.Replica); alive {
			continue
		}
		since, known := c.missing[of.Replica]
		if !known {
			since = now
		}
		gone[of.Replica] = since
		// Wait once more: after the store was set back, nobody seems alive at first.
		if now.Sub(since) >= c.o.alive/2 {
			c.report(ctx, key, of, e, report)
		}
	}
	c.missing = gone
}

// report writes the line of a run that was cut, if no other replica does.
func (c *Claims) report(ctx context.Context, key string, of claim, was store.Entry, report func(audit.Entry) error) {
	now := of
	now.State, now.Replica = cut, c.replica
	if err := c.turn(ctx, key, now, was.Rev); err != nil {
		return // another replica reports it, or the next round does
	}
	if err := report(of.Cut); err != nil {
		c.o.Logger.Error("a run that was cut could not be recorded", "run", of.Cut.Run, "err", err)
	}
}
