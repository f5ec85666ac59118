package httpd

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/guard"
)

// maxPeople is how many people whose tokens come from an identity provider may be
// known at a time. Each takes up some hundred bytes while they have no chat.
const maxPeople = 10_000

// errTooManyPeople means that maxPeople are known, and all of them have a chat.
var errTooManyPeople = errors.New("too many people use the server at the moment")

// people are the callers whose tokens come from an identity provider.
type people struct {
	limit int // bytes of one request

	mu sync.Mutex
	of map[string]*caller // :: the person's key → their caller, as long as it has any state
}

// enter returns a person's caller. The caller's leave must be called when the request
// ends.
func (p *people) enter(id guard.Person) (*caller, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.of[id.Key]
	if c == nil {
		if len(p.of) >= maxPeople {
			return nil, errTooManyPeople
		}
		c = newCaller(id, p.limit)
		p.of[id.Key] = c
	}
	c.mu.Lock()
	c.requests++
	c.mu.Unlock()
	return c, nil
}

func (c *caller) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests--
}

// all returns everybody who is known now.
func (p *people) all() []*caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*caller, 0, len(p.of))
	for _, c := range p.of {
		all = append(all, c)
	}
	return all
}

// forget drops people who have no state here any more.
func (p *people) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, c := range p.of {
		c.mu.Lock()
		idle := c.requests == 0 && c.sessions == 0 && c.chat == nil
		c.mu.Unlock()
		if idle {
			delete(p.of, key)
		}
	}
}

// personKey is the context key of a request's person.
type personKey struct{}

// withPerson returns the request with its person.
func withPerson(r *http.Request, who guard.Person) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), personKey{}, who))
}

// personOf returns the person of a request.
func personOf(r *http.Request) guard.Person {
	who, _ := r.Context().Value(personKey{}).(guard.Person)
	return who
}

// whileGood returns a request for a stream that ends when its token does: a person
// who may no longer use the server gets no more news. A call continues until it is
// answered.
func whileGood(r *http.Request) (_ *http.Request, stop func()) {
	until := personOf(r).Until
	if until.IsZero() {
		return r, func() {}
	}
	ctx, stop := context.WithDeadline(r.Context(), until)
	return r.WithContext(ctx), stop
}
