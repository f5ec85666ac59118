package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/oidc/login"
)

const (
	// longest is how long a session lasts, whatever its person does.
	longest = 12 * time.Hour
	// idle is how long it lasts while no page of it is open.
	idle = 30 * time.Minute
	// early is how long before its end a token is renewed.
	early = 30 * time.Second
	// maxSessions is how many sessions there are at a time, and maxEach how many of one
	// person. A new one ends the one of the same person that was not used for longest; if
	// there is none, the one of all.
	maxSessions = 10_000
	maxEach     = 8
)

// A Session is a person's, in one browser.
type Session struct {
	id    [sha256.Size]byte // digest of the cookie
	proof string            // the second secret
	begun time.Time
	over  context.Context // ends with the session
	stop  context.CancelFunc

	renewing sync.Mutex // held while the provider is asked for new tokens

	mu     sync.Mutex
	who    oidc.Identity
	tokens login.Tokens
	used   time.Time // when a request of it ended last
	open   int       // requests in progress
	// Where replicas share sessions: the revision in the store that this is, and when this
	// replica last saw it written.
	rev   uint64
	saved time.Time
}

// Person returns whose session it is, and the groups of the token that it has now.
func (s *Session) Person() oidc.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}

// Ends has f called when the session ends, until stop is called.
func (s *Session) Ends(f func()) (stop func() bool) { return context.AfterFunc(s.over, f) }

func (s *Session) kept() login.Tokens {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens
}

// use begins a request of the session. The function that it returns ends the request.
func (s *Session) use(now func() time.Time) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.used = now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		s.used = now()
	}
}

// good reports whether the session's token is good, and nobody ended the session.
func (s *Session) good(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over.Err() == nil && now.Before(s.who.Until)
}

// sessions are all sessions. The zero value is ready.
type sessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*Session
}

// newSession returns a session that is begun now, and the secret for its cookie.
func newSession(who *oidc.Identity, tokens login.Tokens, now time.Time) (one *Session, cookie string) {
	cookie = rand.Text() + rand.Text()
	one = &Session{id: idOf(cookie), proof: rand.Text() + rand.Text(), begun: now, used: now, who: *who, tokens: tokens}
	one.over, one.stop = context.WithCancel(context.Background())
	return one, cookie
}

// begin begins a session, and returns the secret for its cookie.
func (s *sessions) begin(who *oidc.Identity, tokens login.Tokens, now time.Time) (cookie string) {
	one, cookie := newSession(who, tokens, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[[sha256.Size]byte]*Session)
	}
	each := 0
	var oldest, oldestOwn *Session
	for _, have := range s.all {
		if !have.alive(now) {
			have.stop()
			delete(s.all, have.id)
			continue
		}
		if oldest == nil || have.last().Before(oldest.last()) {
			oldest = have
		}
		if have.Person().Key != who.Key {
			continue
		}
		if each++; oldestOwn == nil || have.last().Before(oldestOwn.last()) {
			oldestOwn = have
		}
	}
	switch {
	case each >= maxEach:
		oldestOwn.stop()
		delete(s.all, oldestOwn.id)
	case len(s.all) >= maxSessions:
		oldest.stop()
		delete(s.all, oldest.id)
	}
	s.all[one.id] = one
	return cookie
}

// alive reports whether the session may still be used, with a token that can be renewed.
func (s *Session) alive(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.begun) < longest && (s.open > 0 || now.Sub(s.used) < idle) && (s.tokens.Refresh != "" || now.Before(s.who.Until))
}

func (s *Session) last() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *sessions) of(id [sha256.Size]byte) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// end ends a session. Its requests end, too.
func (s *sessions) end(id [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[id]; one != nil {
		one.stop()
		delete(s.all, id)
	}
}

// Session returns the session that a request belongs to, and a function to call when the
// request ends; nil if there is none, or if the store that replicas share cannot be
// reached, which is the error. A session whose token ends gets another one first: a person
// who may no longer use the server is seen then at the latest.
func (d *Desk) Session(r *http.Request) (s *Session, done func(), err error) {
	cookie, ok := d.cookie(r, d.session)
	if !ok {
		return nil, nil, nil
	}
	if s, err = d.find(r.Context(), idOf(cookie)); s == nil || err != nil {
		return nil, nil, err
	}
	if !s.alive(d.o.Now()) {
		return nil, nil, d.end(r.Context(), s.id)
	}
	if err := d.renew(r.Context(), s); err != nil {
		return nil, nil, err
	}
	if !s.good(d.o.Now()) {
		return nil, nil, nil // it may be renewed at the next request, if the provider was away
	}
	done = s.use(d.o.Now)
	if d.shared != nil {
		done = d.attend(s, done)
	}
	return s, done, nil
}

// find returns a session, or nil if there is none.
func (d *Desk) find(ctx context.Context, id [sha256.Size]byte) (*Session, error) {
	if d.shared == nil {
		return d.sessions.of(id), nil
	}
	return d.meet(ctx, id)
}

// end ends a session, on all replicas. Its requests end, too.
func (d *Desk) end(ctx context.Context, id [sha256.Size]byte) error {
	if d.shared != nil {
		if err := d.drop(ctx, keyOf(id)); err != nil {
			return err
		}
	}
	d.sessions.end(id)
	return nil
}

// due reports whether a session's token is about to end and can be renewed.
func (d *Desk) due(s *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens.Refresh != "" && !d.o.Now().Add(early).Before(s.who.Until)
}

// renew renews a session's token if that is about to end. It ends the session if the
// provider refuses, or if the token is not this person's. An error is that of the store.
func (d *Desk) renew(ctx context.Context, s *Session) error {
	if !d.due(s) {
		return nil
	}
	s.renewing.Lock()
	defer s.renewing.Unlock()
	if !d.due(s) { // another request did it
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*providerTime)
	defer cancel()
	if d.shared != nil {
		if mine, err := d.claim(ctx, s); !mine || err != nil {
			return err
		}
	}
	over := d.ask(ctx, s)
	switch {
	case over:
		return d.end(ctx, s.id)
	case d.shared != nil:
		return d.save(ctx, s, "")
	}
	return nil
}

// ask asks the provider for new tokens for a session, and puts them into it. over reports
// that the session must end. If the provider is away, the session stays as it is.
func (d *Desk) ask(ctx context.Context, s *Session) (over bool) {
	ctx, cancel := context.WithTimeout(ctx, providerTime)
	defer cancel()
	p, err := d.at(ctx)
	if err != nil {
		return false
	}
	tokens, err := p.Renew(ctx, s.kept())
	if err != nil {
		_, refused := errors.AsType[*login.RefusedError](err)
		return refused
	}
	who, err := d.o.Verify(ctx, tokens.Access)
	if err != nil && !errors.Is(err, oidc.ErrAway) || err == nil && who.Key != s.Person().Key {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = tokens // the ones before may be good no more
	if err == nil {
		s.who = *who
	}
	return false
}
