package httpd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/guard"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

const (
	// maxHeld is how many bytes one credential's requests in progress may have
	// together.
	maxHeld = 64 << 20
	// maxAnswers is how many bytes of large answers to one credential may wait
	// for their clients together. A single answer may be larger.
	maxAnswers = 64 << 20
	// maxSessions is how many sessions one credential may have. A new session
	// then replaces the one that was idle longest.
	maxSessions = 1024
)

// A caller is a credential and its resources.
type caller struct {
	key    string // the same for all of a person's requests, and on all replicas
	person string
	origin call.Origin
	slots  wire.Slots // for its requests that are being processed
	limit  int        // bytes of one request
	most   int        // bytes of all
	room   int        // bytes of large answers

	mu       sync.Mutex
	inFlight int
	held     int           // bytes of them
	answers  int           // bytes of large answers made but not yet written
	freed    chan struct{} // closed and replaced when answers decreases
	sessions int
	requests int // in progress, for a person whose tokens an identity provider issues
	// chat is the chat of the newer era, which has no sessions; nil until
	// needed. starting is held while it is created.
	chat     wire.Chat
	starting sync.Mutex
	using    int       // requests in progress in chat
	used     time.Time // when the last request ended
}

func newCaller(p guard.Person, limit int) *caller {
	return &caller{
		key: p.Key, person: p.Name, origin: p.Origin, limit: limit, most: max(maxHeld, 2*limit), room: maxAnswers,
		slots: wire.NewSlots(), freed: make(chan struct{}),
	}
}

// use returns the caller's chat of the newer era, and a function that ends its
// use.
func (c *caller) use(h *core) (_ wire.Chat, leave func(), err error) {
	c.starting.Lock()
	defer c.starting.Unlock()
	c.mu.Lock()
	ch := c.chat
	if ch != nil {
		c.using++
	}
	c.mu.Unlock()
	if ch == nil {
		if ch, err = h.host.Open(wire.Client{Transport: "http", Ends: "until this token has not been used for " + inWords(h.idle), Person: c.person, Origin: c.origin, Credential: c.key}); err != nil {
			return nil, nil, err
		}
		c.mu.Lock()
		c.chat = ch
		c.using++
		c.mu.Unlock()
	}
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.using--
		c.used = time.Now()
	}, nil
}

// inWords formats a duration for a person.
func inWords(d time.Duration) string {
	switch {
	case d == time.Hour:
		return "an hour"
	case d%time.Minute == 0:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return d.String()
}

// takeChat removes the chat from its caller and returns it, to be ended.
func (c *caller) takeChat() wire.Chat {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.chat
	c.chat = nil
	return ch
}

// idleChat removes and returns the chat if it was last used before a time.
func (c *caller) idleChat(before time.Time) wire.Chat {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.using > 0 || c.used.After(before) {
		return nil
	}
	ch := c.chat
	c.chat = nil
	return ch
}

// admit counts a request of size bytes, or reports false if there is no room.
func (c *caller) admit(size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight >= wire.MaxInFlight || c.held+size > c.most {
		return false
	}
	c.inFlight++
	c.held += size
	return true
}

// shrink gives back the bytes that a request turned out not to need.
func (c *caller) shrink(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held -= by
}

func (c *caller) release(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
	c.held -= size
}

// keep waits for room for a large answer and counts it until drop. A waiting
// request keeps its place, so no more answers are made meanwhile. It reports
// false if the client cancelled the request first. If the server or the session
// ends, it does not wait.
func (c *caller) keep(ctx context.Context, size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.answers > 0 && c.answers+size > c.room && ctx.Err() == nil {
		freed := c.freed
		c.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
	if errors.Is(context.Cause(ctx), wire.ErrCancelled) {
		return false
	}
	c.answers += size
	return true
}

// drop stops counting an answer that was written or never will be.
func (c *caller) drop(size int) {
	if size == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers -= size
	close(c.freed)
	c.freed = make(chan struct{})
}
