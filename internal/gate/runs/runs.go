// Package runs has each run claimed in the store that replicas of a server share before
// it starts: of several claims of one answer, one succeeds. A run whose replica ended
// before it did is reported by another replica as cut, and never started again.
//
// The claim of a run that rests on an answer takes the place of the answer's question: the
// write that takes the answer claims the run.
//
// It starts nothing, and it allows nothing.
package runs

import (
	"bytes"
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
	claimPrefix = "run."     // of the keys of claims; the ID of the answer or of the run follows
	takenPrefix = "q."       // of the keys of questions, and of claims in the place of one
	alivePrefix = "replica." // of the keys by which replicas say that they are alive
	// aliveTime is how long a replica counts as alive that says nothing, by the clock of
	// the store.
	aliveTime = 12 * time.Second
	roundTime = 10 * time.Second // for one look at all claims
)

// claimMark is how a claim begins in the place of a question, which is a JSON object.
const claimMark = "claim "

// A claim is the entry of one run.
type claim struct {
	Replica string `json:"replica"`
	State   state  `json:"state"`
	// Answer is the ID of the answer on which the run rests, if the claim is in the place of
	// its question.
	Answer string `json:"answer,omitempty"`
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
	mine map[string]*held // :: run → a claim of this replica, of a run that has not ended

	// Only the goroutine of watch uses these, once that runs.
	rev     uint64               // of the own sign of life
	missing map[string]time.Time // :: replica with claims → since when it gives no sign of life
}

// held is a claim of this replica.
type held struct {
	claim
	key string
	rev uint64 // 0: not written yet
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
		mine: make(map[string]*held), missing: make(map[string]time.Time),
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

// Entry returns the claim of a run, which the caller writes in the place of the question
// with this ID when it takes the answer. Then it calls Took, and in any case End. cut is
// the line that the log of another replica gets if this one ends before End is called.
func (c *Claims) Entry(question string, cut audit.Entry) ([]byte, error) {
	mine := claim{Replica: c.replica, State: running, Answer: question, Cut: cut}
	value, err := strictjson.Encode(&mine)
	if err != nil {
		return nil, fmt.Errorf("claiming a run: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mine[cut.Run] = &held{claim: mine} // if it is written and Took not called, tidy ends it
	return append([]byte(claimMark), value...), nil
}

// Took says where the claim of a run was written.
func (c *Claims) Took(run, key string, rev uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.mine[run]; h != nil {
		h.key, h.rev = key, rev
	}
}

// Claim claims a run before it starts. id is of the answer or of the decision that it rests
// on. It reports false if one that rests on the same started or ended before. cut is as in
// Entry; the claim that was written there goes on. The caller calls End. An error means
// that nobody knows whether the run is claimed; it must not start.
func (c *Claims) Claim(ctx context.Context, id string, cut audit.Entry) (claimed bool, err error) {
	key, lasts := claimPrefix+id, time.Duration(0)
	mine := claim{Replica: c.replica, State: running, Cut: cut}
	c.mu.Lock()
	h := c.mine[cut.Run]
	taken := h != nil && h.rev != 0
	if !taken {
		c.mine[cut.Run] = &held{claim: mine}
	}
	c.mu.Unlock()
	if taken {
		// What an engine restores of the question, with its answer, starts nothing.
		mine, lasts = spent(mine, ended), c.o.Keep
	}
	value, err := strictjson.Encode(&mine)
	if err != nil {
		return false, fmt.Errorf("claiming a run: %w", err)
	}
	rev, err := c.mirror.Put(ctx, key, value, 0, lasts)
	switch {
	case errors.Is(err, store.ErrConflict):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("claiming a run: %w", err)
	}
	if !taken {
		c.Took(cut.Run, key, rev)
	}
	return true, nil
}

// End says that a run has ended, or will not start. Without a claim of the run, it does
// nothing.
func (c *Claims) End(run string) {
	var h held
	c.mu.Lock()
	if mine := c.mine[run]; mine != nil {
		h = *mine
	}
	c.mu.Unlock()
	var err error
	if h.rev != 0 {
		// The call's context may be over.
		err = c.close(context.Background(), h.key, h.claim, h.rev, ended)
	}
	c.mu.Lock()
	delete(c.mine, run) // if the claim is still there, tidy ends it
	c.mu.Unlock()
	if err != nil {
		c.o.Logger.Warn("could not tell the other replicas that a run ended; will try again", "run", run, "err", err)
	}
}

// spent returns what is kept of a claim for a while, so that nothing starts for the same
// answer.
func spent(of claim, now state) claim {
	of.State, of.Answer, of.Cut = now, "", audit.Entry{Run: of.Cut.Run}
	return of
}

// close ends a claim that has a revision.
func (c *Claims) close(ctx context.Context, key string, of claim, rev uint64, now state) error {
	if strings.HasPrefix(key, takenPrefix) {
		return c.mirror.Delete(ctx, key, rev)
	}
	of = spent(of, now)
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
	for key, e := range c.claims() {
		var of claim
		if err := json.Unmarshal(e.Value, &of); err != nil || of.State != running {
			continue
		}
		if of.Replica == c.replica {
			c.mu.Lock()
			goesOn := c.mine[of.Cut.Run] != nil
			c.mu.Unlock()
			if !goesOn {
				_ = c.close(ctx, key, of, e.Rev, ended) // otherwise the next round does
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

// claims returns all claims, by key, without their marks.
func (c *Claims) claims() map[string]store.Entry {
	all := c.mirror.All(claimPrefix)
	for key, e := range c.mirror.All(takenPrefix) {
		if value, is := bytes.CutPrefix(e.Value, []byte(claimMark)); is {
			e.Value = value
			all[key] = e
		}
	}
	return all
}

// report writes the line of a run that was cut, if no other replica does.
func (c *Claims) report(ctx context.Context, key string, of claim, was store.Entry, report func(audit.Entry) error) {
	if of.Answer != "" {
		// Perhaps its replica only lost touch: then the run cannot start any more.
		now := spent(of, cut)
		value, err := strictjson.Encode(&now)
		if err == nil {
			_, err = c.mirror.Put(ctx, claimPrefix+of.Answer, value, 0, c.o.Keep)
		}
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return // the next round does
		}
	}
	if err := c.close(ctx, key, of, was.Rev, cut); err != nil {
		return // another replica reports it, or the next round does
	}
	if err := report(of.Cut); err != nil {
		c.o.Logger.Error("a run that was cut could not be recorded", "run", of.Cut.Run, "err", err)
	}
}
