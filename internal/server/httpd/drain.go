package httpd

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// endingWords is what clients are told who come while the server drains.
const endingWords = "the server is ending and takes no new calls; call again, and another one answers"

// work counts the requests that are being worked on. Once it is closed, no request
// begins, nor when there are as many as there may be: who is there keeps their place.
type work struct {
	most, each int            // of all, and of one person; set before the first
	group      map[string]int // :: group → how many of its people together; never modified

	mu     sync.Mutex
	n      int
	of     map[*caller]int
	in     map[string]int // :: group in the map group → how many of its people
	closed bool
	none   chan struct{} // closed when nothing is left; nil: nobody waits
}

// begin counts a request of a person, who is in these groups, until done is called. If
// it must not begin, begin returns the status of the refusal, and why.
func (b *work) begin(c *caller, groups []string) (done func(), status int, why string) {
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
		return nil, http.StatusServiceUnavailable, endingWords
	case b.of[c] >= b.each:
		return nil, http.StatusTooManyRequests, "too many calls of yours are under way; call again when one has ended"
	case slices.ContainsFunc(bounded, func(g string) bool { return b.in[g] >= b.group[g] }):
		return nil, http.StatusTooManyRequests, "too many calls of your group are under way; call again when one has ended"
	case b.n >= b.most:
		return nil, http.StatusServiceUnavailable, "the server has as many calls under way as it takes; call again soon"
	}
	b.n++
	b.of[c]++
	for _, g := range bounded {
		b.in[g]++
	}
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.n--
		if b.of[c]--; b.of[c] == 0 {
			delete(b.of, c)
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

// close lets no more requests begin, and returns how many are left and a channel that
// is closed when none is. It is called once.
func (b *work) close() (left int, none <-chan struct{}) {
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

func (b *work) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// drain lets nothing new begin, and waits until the requests that are being worked on
// have ended, at most for a time. Calls that only wait for a person return, and say where
// the question is. Answers, cancellations and what people decide still come in.
func (h *Server) drain(most time.Duration) {
	left, none := h.busy.close()
	h.host.Drain()
	if left > 0 {
		h.logger.Info("the server ends when what it works on has ended; another signal ends it at once", "requests", left, "within", most.String())
	}
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-none:
	case <-late.C:
		h.logger.Warn("the server ends now, and what it works on is cut")
	}
}

// begin counts the request of an exchange, or answers that it must not begin now. A
// request that waits for news until its client leaves does not count.
func (x *exchange) begin(lasting bool) bool {
	done, status, why := x.in.busy.begin(x.caller, personOf(x.r).Groups)
	if done == nil {
		x.w.Header().Set("Connection", "close") // the next one may go elsewhere
		x.reject(status, wire.CodeBusy, "%s", why)
		return false
	}
	if lasting {
		done()
	} else {
		x.after(done)
	}
	return true
}

// readyFor is how long an answer of [Options.Ready] holds: anybody can ask.
const readyFor = time.Second

// readiness asks whether the server can do its work, at most once in readyFor.
type readiness struct {
	ask func(context.Context) (why string) // nil: it always can

	mu  sync.Mutex
	at  time.Time
	why string
}

func (r *readiness) now(ctx context.Context) (why string) {
	if r.ask == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) >= readyFor {
		r.why = r.ask(context.WithoutCancel(ctx)) // others get this answer too
		r.at = time.Now()
	}
	return r.why
}

// answerReady reports whether the server takes calls, for who sends it some.
func (h *Server) answerReady(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		reply.NotAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Connection", "close")
	why := "draining"
	if !h.busy.isClosed() {
		why = h.ready.now(r.Context())
	}
	if why != "" {
		reply.JSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready", "why": why})
		return
	}
	reply.JSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
