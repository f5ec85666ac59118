package wire

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

// Slots are those of one client's requests that are worked on: a channel holds one
// value for each. work is for most of them, and heavy for those that may be answered
// with whole files. Make them with [NewSlots].
type Slots struct {
	work, heavy chan struct{}
}

// NewSlots returns the slots of one client.
func NewSlots() Slots {
	return Slots{work: make(chan struct{}, maxConcurrent), heavy: make(chan struct{}, maxHeavy)}
}

// Enter waits for the slot of a request, and reports false when ctx was done first.
// The context it returns is for the work, and leave gives the slot back.
func (s Slots) Enter(ctx context.Context, method string) (_ context.Context, leave func(), ok bool) {
	p := s.of(method)
	if !p.take(ctx) {
		return ctx, nil, false
	}
	return context.WithValue(ctx, slotKey{}, p), p.give, true
}

// of returns the slot of a request, which is not taken yet; nil when it needs
// none, since it waits for ever.
func (s Slots) of(method string) *slot {
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

// Aside lets other requests be worked on while wait waits. The caller is the
// goroutine that works on a request; it has its slot back afterwards, unless
// the request was cancelled, which then ends without one.
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
