// Package busy decides whether a server takes another request. It counts those under way, for
// each person and group, and knows whether the server is ending and can do its work. It
// answers no request.
package busy

import (
	"net/http"
	"slices"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/quota"
)

// EndingWords tell a client whose request comes while the server drains.
const EndingWords = "the server is ending and takes no new calls; call again, and another one answers"

// Requests counts the requests under way. No more begin when there are as many as there may
// be, or once it is closed; those under way go on.
type Requests struct {
	most int // of all; set before the first

	mu     sync.Mutex
	n      int
	tally  *quota.Tally
	closed bool
	none   chan struct{} // closed when nothing is left; nil: nobody waits
}

// New returns Requests that allow most requests at the same time, within the limits of
// persons and groups.
func New(most int, limits quota.Limits) *Requests {
	return &Requests{most: most, tally: quota.New(limits)}
}

// Begin counts a request of a person, who is in these groups, until done is called. If
// it must not begin, Begin returns the status of the refusal, and why.
func (b *Requests) Begin(person any, groups []string) (done func(), status int, why string) {
	use := quota.Use{Person: person, Groups: slices.Clone(groups), Amount: 1}
	b.mu.Lock()
	defer b.mu.Unlock()
	over := b.tally.Over(use)
	switch {
	case b.closed:
		return nil, http.StatusServiceUnavailable, EndingWords
	case over != nil && over.Group == "":
		return nil, http.StatusTooManyRequests, "too many calls of yours are under way; call again when one has ended"
	case over != nil:
		return nil, http.StatusTooManyRequests, "too many calls of your group are under way; call again when one has ended"
	case b.n >= b.most:
		return nil, http.StatusServiceUnavailable, "the server has as many calls under way as it takes; call again soon"
	}
	b.n++
	b.tally.Add(use)
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.n--
		b.tally.Remove(use)
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
