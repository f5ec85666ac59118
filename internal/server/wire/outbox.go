package wire

import (
	"context"
	"errors"
	"io"
	"sync"
)

const (
	// fullOutput is how many bytes may wait for a slow client before requests
	// hold back their replies.
	fullOutput = 16 << 20
	// maxOutput is how many bytes may wait at most, including messages that
	// cannot be held back: notifications and refusals. A client that lets them
	// pile up is considered gone.
	maxOutput = 64 << 20
)

// ErrNotRead ends a connection whose client does not read.
var ErrNotRead = errors.New("the client does not read what is written to it")

// ErrNoOutput is the error for a message after the output was closed.
var ErrNoOutput = errors.New("the output is closed")

// An outbox writes messages in the order in which they were queued, on its own
// goroutine, so that nothing waits for a client that does not read.
type outbox struct {
	out    io.Writer
	full   int           // bytes, see fullOutput
	most   int           // bytes, see maxOutput
	broken chan struct{} // closed when a message was lost; see err
	done   chan struct{} // closed when run ends

	mu     sync.Mutex
	more   sync.Cond     // of mu: queue, closed or err changed
	freed  chan struct{} // closed and replaced when size decreases
	queue  [][]byte
	size   int   // bytes queued or being written
	closed bool  // nothing more may be queued
	err    error // why writing stopped
}

// newOutbox starts an outbox. It ends after close, or when out fails. A writer
// that blocks forever holds only the outbox's goroutine.
func newOutbox(out io.Writer, full, most int) *outbox {
	o := &outbox{out: out, full: full, most: most, broken: make(chan struct{}), done: make(chan struct{}), freed: make(chan struct{})}
	o.more.L = &o.mu
	go o.run()
	return o
}

func (o *outbox) run() {
	defer close(o.done)
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.closed && o.err == nil {
			o.more.Wait()
		}
		if len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		b := o.queue[0]
		o.queue[0] = nil
		o.queue = o.queue[1:]
		o.mu.Unlock()

		_, err := o.out.Write(b)

		o.mu.Lock()
		o.size -= len(b)
		close(o.freed)
		o.freed = make(chan struct{})
		if err != nil {
			o.fail(err)
		}
		o.mu.Unlock()
	}
}

// put queues one message and never waits.
func (o *outbox) put(b []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.add(b)
}

// putWhenRoom queues one message as soon as there is room for it, or ctx is
// done. It calls room right before.
func (o *outbox) putWhenRoom(ctx context.Context, b []byte, room func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && o.size > 0 && o.size+len(b) > o.full && ctx.Err() == nil {
		freed := o.freed
		o.mu.Unlock()
		select {
		case <-freed:
		case <-o.broken:
		case <-ctx.Done():
		}
		o.mu.Lock()
	}
	room()
	return o.add(b)
}

// add queues b. The caller holds mu.
func (o *outbox) add(b []byte) error {
	switch {
	case o.err != nil:
		return o.err
	case o.closed:
		return ErrNoOutput
	case o.size > 0 && o.size+len(b) > o.most:
		o.fail(ErrNotRead)
		return o.err
	}
	o.queue = append(o.queue, b)
	o.size += len(b)
	o.more.Signal()
	return nil
}

// fail drops the queue. The caller holds mu.
func (o *outbox) fail(err error) {
	if o.err != nil {
		return
	}
	o.err = err
	for _, b := range o.queue {
		o.size -= len(b)
	}
	o.queue = nil
	close(o.broken)
	o.more.Signal()
}

// close says that nothing more may be queued. Queued messages are still written;
// done is closed when they are.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
}

// failure returns why messages were lost, or nil.
func (o *outbox) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
