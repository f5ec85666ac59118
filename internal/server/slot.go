package server

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// maxConcurrent is how many requests of one client are worked on at once. One
	// that waits for a person, or for its turn to run, is not worked on.
	maxConcurrent = 64
	// maxHeavy is how many of those may be answered with whole files: while such
	// an answer is made, it takes many times the file's size.
	maxHeavy = 4
)

// slots are those of one client's requests that are worked on.
type slots struct {
	work, heavy chan struct{}
}

func newSlots() slots {
	return slots{work: make(chan struct{}, maxConcurrent), heavy: make(chan struct{}, maxHeavy)}
}

// of returns the slot of a request, which is not taken yet; nil when it needs
// none, since it waits for ever.
func (s slots) of(method string) *slot {
	switch method {
	case string(mcp.MethodSubscriptionsListen):
		return nil
	case string(mcp.MethodResourcesRead), string(mcp.MethodPromptsGet):
		return &slot{of: s.heavy}
	}
	return &slot{of: s.work}
}

// A slot is one request's among those that are worked on. Only the goroutine
// that works on the request uses it. A nil slot is always there.
type slot struct {
	of   chan struct{}
	held bool
}

// take waits for the slot, and reports false when ctx was done first.
func (p *slot) take(ctx context.Context) bool {
	if p == nil {
		return true
	}
	select {
	case p.of <- struct{}{}:
		p.held = true
	case <-ctx.Done():
	}
	return p.held
}

// give gives the slot back, if it is held.
func (p *slot) give() {
	if p != nil && p.held {
		p.held = false
		<-p.of
	}
}

// slotKey is the key of a request's slot in its context.
type slotKey struct{}

// aside lets other requests be worked on while wait waits. The caller is the
// goroutine that works on a request; it has its slot back afterwards, unless
// the request was cancelled, which then ends without one.
func aside(ctx context.Context, wait func()) {
	p, _ := ctx.Value(slotKey{}).(*slot)
	if p == nil || !p.held {
		wait()
		return
	}
	p.give()
	wait()
	p.take(ctx)
}
