package busy

import (
	"context"
	"sync"
	"time"
)

// readyFor is how long an answer holds: anybody can ask.
const readyFor = time.Second

// NewReadiness returns a Readiness that asks ask, which is nil for a server that is always
// ready.
func NewReadiness(ask func(context.Context) (why string)) *Readiness { return &Readiness{ask: ask} }

// A Readiness asks whether the server can do its work, at most once in readyFor.
type Readiness struct {
	ask func(context.Context) (why string) // nil: it always can

	mu  sync.Mutex
	at  time.Time
	why string
}

// Now returns why the server cannot do its work, or "" if it can.
func (r *Readiness) Now(ctx context.Context) (why string) {
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
