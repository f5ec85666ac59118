package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/oidc/login"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

const (
	// sharedPrefix begins the keys of sessions; the digest of the cookie follows.
	sharedPrefix = "ps."
	// saveEvery is how often a session that is used is written again. The store drops one
	// that no replica has written for as long as an unused session lasts.
	saveEvery  = 5 * time.Minute
	sharedTime = idle + saveEvery
	// lookEvery is how often an open page looks whether its session has ended elsewhere.
	lookEvery = time.Second
	// claimEvery is how often a replica looks whether another one has renewed a session.
	claimEvery = 50 * time.Millisecond
	shareTries = 5 // of a change that other replicas were faster with
)

// errRevoked says that the operator took back what a person may do.
var errRevoked = errors.New("the person's access was revoked")

// A record is a session in the store.
type record struct {
	Proof  string        `json:"proof"`
	Begun  time.Time     `json:"begun"` // by the clock of its replica
	Who    oidc.Identity `json:"who"`
	Tokens login.Tokens  `json:"tokens"`
	// Renewing is a random text of the replica that asks the provider for new tokens. Two
	// must not: a provider may take the second one for a thief.
	Renewing string `json:"renewing,omitempty"`
}

func keyOf(id [sha256.Size]byte) string { return sharedPrefix + hex.EncodeToString(id[:]) }

// share begins a session on all replicas, and returns the secret for its cookie.
func (d *Desk) share(ctx context.Context, who *oidc.Identity, tokens login.Tokens) (cookie string, err error) {
	if err := d.shared.Sync(ctx); err != nil {
		return "", err
	}
	now := d.o.Now()
	if d.revoked(who, now) {
		return "", errRevoked
	}
	if err := d.makeRoom(ctx, who); err != nil {
		return "", err
	}
	s, cookie := newSession(who, tokens, now)
	return cookie, d.save(ctx, s, "")
}

func (d *Desk) revoked(who *oidc.Identity, since time.Time) bool {
	return d.o.Revoked != nil && d.o.Revoked(who.Person, since)
}

// makeRoom ends a person's session that was written longest ago if they have as many as
// they may, or else that of all if there are as many as there may be.
func (d *Desk) makeRoom(ctx context.Context, who *oidc.Identity) error {
	var all, own []store.Entry
	for _, e := range d.shared.All(sharedPrefix) {
		all = append(all, e)
		var r record
		if json.Unmarshal(e.Value, &r) == nil && r.Who.Key == who.Key {
			own = append(own, e)
		}
	}
	older := func(a, b store.Entry) int { return cmp.Compare(a.Rev, b.Rev) }
	switch {
	case len(own) >= maxEach:
		return d.drop(ctx, slices.MinFunc(own, older).Key)
	case len(all) >= maxSessions:
		return d.drop(ctx, slices.MinFunc(all, older).Key)
	}
	return nil
}

// drop removes a session from the store, if it is there.
func (d *Desk) drop(ctx context.Context, key string) (err error) {
	for range shareTries {
		var e store.Entry
		if e, err = d.shared.Get(ctx, key); errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForged) {
			return nil // sealed with a key that was replaced, it is nobody's session
		}
		if err != nil {
			return err
		}
		if err = d.shared.Delete(ctx, key, e.Rev); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}

// meet returns a session as the replicas have it now, or nil if there is none.
func (d *Desk) meet(ctx context.Context, id [sha256.Size]byte) (*Session, error) {
	if err := d.shared.Sync(ctx); err != nil {
		return nil, err
	}
	r, rev := d.known(id)
	if r == nil {
		d.sessions.end(id)
		return nil, nil
	}
	if d.revoked(&r.Who, r.Begun) {
		return nil, d.end(ctx, id)
	}
	s := d.sessions.adopt(id, r, d.o.Now())
	s.follow(r, rev, d.o.Now())
	return s, nil
}

// known returns a session as the mirror has it; nil if it has none.
func (d *Desk) known(id [sha256.Size]byte) (*record, uint64) {
	e, ok := d.shared.Entry(keyOf(id))
	r := new(record)
	if !ok || json.Unmarshal(e.Value, r) != nil {
		return nil, 0
	}
	return r, e.Rev
}

// adopt returns the session of a record, which another replica may have begun.
func (s *sessions) adopt(id [sha256.Size]byte, r *record, now time.Time) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[id]; one != nil {
		return one
	}
	for _, have := range s.all {
		if !have.alive(now) { // if others use it, it is adopted again when it is needed here
			have.stop()
			delete(s.all, have.id)
		}
	}
	one := &Session{id: id, proof: r.Proof, begun: r.Begun, who: r.Who, tokens: r.Tokens}
	one.over, one.stop = context.WithCancel(context.Background())
	if s.all == nil {
		s.all = make(map[[sha256.Size]byte]*Session)
	}
	s.all[id] = one
	return one
}

// follow makes the session what another replica made of it. It is used now: the store
// would have dropped it otherwise.
func (s *Session) follow(r *record, rev uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = now
	if rev > s.rev {
		s.rev, s.saved, s.who, s.tokens = rev, now, r.Who, r.Tokens
	}
}

// save writes a session, with who renews it. If another replica was faster, the session
// becomes what that one made of it, or ends if it is gone.
func (d *Desk) save(ctx context.Context, s *Session, renewing string) error {
	s.mu.Lock()
	r, rev := record{Proof: s.proof, Begun: s.begun, Who: s.who, Tokens: s.tokens, Renewing: renewing}, s.rev
	s.mu.Unlock()
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keeping a session: %w", err)
	}
	now, err := d.shared.Put(ctx, keyOf(s.id), value, rev, sharedTime)
	switch {
	case errors.Is(err, store.ErrConflict):
		_, err = d.meet(ctx, s.id)
		return err
	case err != nil:
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rev, s.saved = max(s.rev, now), d.o.Now()
	return nil
}

// claim makes this replica the one that renews a session. It reports false if the session
// is over, or another replica has renewed it meanwhile.
func (d *Desk) claim(ctx context.Context, s *Session) (mine bool, err error) {
	me, other, since := rand.Text(), "", time.Time{}
	for {
		if now, err := d.meet(ctx, s.id); now == nil || err != nil || !d.due(s) {
			return false, err
		}
		r, _ := d.known(s.id)
		switch {
		case r == nil:
			return false, nil
		case r.Renewing == me:
			return true, nil
		case r.Renewing != other:
			other, since = r.Renewing, time.Now()
		}
		if other == "" || time.Since(since) > d.patience { // it ended before it was done
			if err := d.save(ctx, s, me); err != nil {
				return false, err
			}
			continue
		}
		select {
		case <-time.After(claimEvery):
		case <-ctx.Done():
			return false, nil
		}
	}
}

// attend keeps a session while a request of it is open, and ends the request when the
// session has ended elsewhere. The function that it returns ends the request.
func (d *Desk) attend(s *Session, done func()) func() {
	over := make(chan struct{})
	go func() {
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for {
			d.keep(s)
			select {
			case <-look.C:
			case <-over:
				return
			}
		}
	}()
	return func() { close(over); done() }
}

// keep writes a session again that was written long ago, and ends one that has ended
// elsewhere. The next request finds out whether it has if the store is away.
func (d *Desk) keep(s *Session) {
	r, _ := d.known(s.id)
	s.mu.Lock()
	due := d.o.Now().Sub(s.saved) >= saveEvery
	s.mu.Unlock()
	switch {
	case r == nil, d.revoked(&r.Who, r.Begun):
		d.sessions.end(s.id)
	case due && r.Renewing == "":
		ctx, cancel := context.WithTimeout(s.over, providerTime)
		defer cancel()
		_ = d.save(ctx, s, "")
	}
}
