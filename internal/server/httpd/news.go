package httpd

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
)

const (
	// maxStreams is how many streams of one session may wait for news at once;
	// then the oldest ends. It may have broken unnoticed.
	maxStreams = 4
	// maxOwed is how many messages a session keeps for the next stream.
	maxOwed = 64
)

// news delivers a session's messages that belong to no request: on a stream that
// waits for news, else on the stream of a current request, else on the next
// stream. Messages still queued on a waiting stream when it ends go on the next
// one. Messages written but not read are lost, and so are those queued on the
// stream of a request that ends early.
type news struct {
	logger *slog.Logger

	mu      sync.Mutex
	waiting []*stream // streams that wait for news, oldest first
	busy    []*stream // streams of requests, oldest first
	owed    [][]byte  // encoded messages, oldest first
}

// Send sends a message. A message equal to one that still waits is sent only
// once.
func (n *news) Send(message any) {
	b, err := json.Marshal(message)
	if err != nil {
		n.logger.Error("a message cannot be encoded", "err", err)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	// Two changes of the tools before the client heard of either are one
	// message.
	if slices.ContainsFunc(n.owed, func(have []byte) bool { return string(have) == string(b) }) {
		return
	}
	n.owed = append(n.owed, b)
	n.owed = n.owed[max(0, len(n.owed)-maxOwed):]
	n.pay()
}

// pay sends the owed messages on the newest stream that takes them. The caller
// holds mu.
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

// SendWhenRoom fails: news carries no questions, since they belong to a request.
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

// unwait removes a stream that waited for news, and takes back its queued
// messages.
func (n *news) unwait(st *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = slices.DeleteFunc(n.waiting, func(have *stream) bool { return have == st })
	unsent, _ := st.take(true)
	n.owed = append(unsent, n.owed...)
	n.owed = n.owed[max(0, len(n.owed)-maxOwed):]
	n.pay()
}

// carry adds the stream of a request, which can carry news until uncarry.
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
