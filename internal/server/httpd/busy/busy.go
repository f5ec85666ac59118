// Package busy decides whether a server takes another request. It counts those under way, for
// each person and group, and knows whether the server is ending and can do its work. It
// answers no request.
package busy

import (
	"maps"
	"net/http"
	"slices"
	"sync"
)

// EndingWords tell a client whose request comes while the server drains.
const EndingWords = "the server is ending and takes no new calls; call again, and another one answers"

// Requests counts the requests under way. No more begin when there are as many as there may
// be, or once it is closed; those under way go on.
type Requests struct {
	most, each int            // of all, and of one person; set before the first
	group      map[string]int // :: group → how many of its people together; never modified

	mu     sync.Mutex
	n      int
	of     map[any]int    // :: person → their requests
	in     map[string]int // :: group in the map group → how many of its people
	closed bool
	none   chan struct{} // closed when nothing is left; nil: nobody waits
}

// New returns Requests that allow most requests at the same time, each of them for one
// person, and group[g] for the people of a group g together.
func New(most, each int, group map[string]int) *Requests {
	return &Requests{most: most, each: each, group: maps.Clone(group), of: make(map[any]int), in: make(map[string]int)}
}

// Begin counts a request of a person, who is in these groups, until done is called. If
// it must not begin, Begin returns the status of the refusal, and why.
func (b *Requests) Begin(person any, groups []string) (done func(), status int, why string) {
	var bounded []string // each once: a token may name a group twice
	for _, g := range groups {
		if _, ok := b.group[g]; ok && !slices.Contains(bounded, g) {
			bounded = append(bounded, g)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, http.StatusServiceUnavailable, EndingWords
	case b.of[person] >= b.each:
		return nil, http.StatusTooManyRequests, "too many calls of yours are under way; call again when one has ended"
	case slices.ContainsFunc(bounded, func(g string) bool { return b.in[g] >= b.group[g] }):
		return nil, http.StatusTooManyRequests, "too many calls of your group are under way; call again when one has ended"
	case b.n >= b.most:
		return nil, http.StatusServiceUnavailable, "the server has as many calls under way as it takes; call again soon"
	}
	b.n++
	b.of[person]++
	for _, g := range bounded {
		b.in[g]++
	}
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.n--
		if b.of[person]--; b.of[person] == 0 {
			delete(b.of, person)
		}
		for _, g := range bounded {
			b.in[g]--
		}
		if b.n == 0 && b.none != nil {
			close(b.none)
			b.none = nil
		}
	}), 0, ""
}

// Close lets no more requests begin, and returns how many are left and a channel that
// is closed when none is. It is called once.
func (b *Requests) Close() (left int, none <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	c := make(chan struct{})
	if b.n == 0 {
		close(c)
	} else {
		b.none = c
	}
	return b.n, c
}

// IsClosed reports whether Close was called.
func (b *Requests) IsClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}
