package httpd

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
)

const (
	// maxStreams is how many streams of one session wait for news at once; then
	// the oldest ends. One that broke may not have been noticed yet.
	maxStreams = 4
	// maxOwed is how many messages a session keeps for the next stream.
	maxOwed = 64
)

// news is what a session has to say that belongs to no request: over a stream that
// waits for it, or else with whatever is under way, or else with what comes next.
// What waits on a stream for news when it ends goes on the next one. What a client
// did not read of what was written to it is lost, and so is what waits on the stream
// of a request that ends early.
type news struct {
	logger *slog.Logger

	mu      sync.Mutex
	waiting []*stream // for news, oldest first
	busy    []*stream // of requests, oldest first
	owed    [][]byte  // encoded messages, oldest first
}

// Send sends one message, once, even if it is sent again before anybody heard it.
func (n *news) Send(message any) {
	b, err := json.Marshal(message)
	if err != nil {
		n.logger.Error("a message cannot be encoded", "err", err)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	// That the tools changed, twice before anybody heard, is one piece of news.
	if slices.ContainsFunc(n.owed, func(have []byte) bool { return string(have) == string(b) }) {
		return
	}
	n.owed = append(n.owed, b)
	n.owed = n.owed[max(0, len(n.owed)-maxOwed):]
	n.pay()
}

// pay sends what is owed on the newest stream that takes it. The caller holds
// mu.
func (n *news) pay() {
	for len(n.owed) > 0 {
		paid := false
		for _, streams := range [][]*stream{n.waiting, n.busy} {
			for _, st := range slices.Backward(streams) {
				if paid = st.put(json.RawMessage(n.owed[0])) == nil; paid {
					break
				}
			}
			if paid {
				break
			}
		}
		if !paid {
			return
		}
		n.owed = n.owed[1:]
	}
}

// A session's own wire carries no questions: they belong to a request.
func (n *news) SendWhenRoom(context.Context, any) error { return errNoStream }
func (n *news) Asks() bool                              { return false }

// wait adds a stream that waits for news.
func (n *news) wait(st *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = append(n.waiting, st)
	if len(n.waiting) > maxStreams {
		n.waiting[0].close()
		n.waiting = n.waiting[1:]
	}
	n.pay()
}

// unwait takes back a stream that waited for news, and what was to go on it.
func (n *news) unwait(st *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = slices.DeleteFunc(n.waiting, func(have *stream) bool { return have == st })
	unsent, _ := st.take(true)
	n.owed = append(unsent, n.owed...)
	n.owed = n.owed[max(0, len(n.owed)-maxOwed):]
	n.pay()
}

// carry adds the stream of a request: news go with what is under way, until uncarry.
func (n *news) carry(st *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy = append(n.busy, st)
	n.pay()
}

func (n *news) uncarry(st *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy = slices.DeleteFunc(n.busy, func(have *stream) bool { return have == st })
}

// close ends the streams that wait for news.
func (n *news) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, st := range n.waiting {
		st.close()
	}
}
