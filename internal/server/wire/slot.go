package wire

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// maxConcurrent is how many requests of one client are processed at once. A
	// request that waits for a person, or for its turn to run, does not count.
	maxConcurrent = 64
	// maxHeavy is how many of these may be answered with whole files: making
	// such an answer takes many times the file's size.
	maxHeavy = 4
)

// Slots bound how many of one client's requests are processed at once: a channel
// holds one value for each. work is for most requests, and heavy for those that
// may be answered with whole files. Create them with [NewSlots].
type Slots struct {
	work, heavy chan struct{}
}

// NewSlots returns the slots of one client.
func NewSlots() Slots {
	return Slots{work: make(chan struct{}, maxConcurrent), heavy: make(chan struct{}, maxHeavy)}
}

// Enter waits for a slot for a request, and reports false if ctx was done first.
// The returned context is for the work, and leave gives the slot back.
func (s Slots) Enter(ctx context.Context, method string) (_ context.Context, leave func(), ok bool) {
	p := s.of(method)
	if !p.take(ctx) {
		return ctx, nil, false
	}
	return context.WithValue(ctx, slotKey{}, p), p.give, true
}

// of returns the slot for a request, not yet taken; nil for a request that needs
// none because it waits forever.
func (s Slots) of(method string) *slot {
	switch method {
	case string(mcp.MethodSubscriptionsListen):
		return nil
	case string(mcp.MethodResourcesRead), string(mcp.MethodPromptsGet):
		return &slot{of: s.heavy}
	}
	return &slot{of: s.work}
}

// A slot is one request's place among those being processed. Only the request's
// goroutine uses it. A nil slot is always available.
type slot struct {
	of   chan struct{}
	held bool
}

// take waits for the slot, and reports false if ctx was done first.
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

// slotKey is the context key of a request's slot.
type slotKey struct{}

// Aside lets other requests be processed while wait waits. The caller is a
// request's goroutine. It has its slot back afterwards, unless the request was
// cancelled, which then ends without one.
func Aside(ctx context.Context, wait func()) {
	p, _ := ctx.Value(slotKey{}).(*slot)
	if p == nil || !p.held {
		wait()
		return
	}
	p.give()
	wait()
	p.take(ctx)
}
