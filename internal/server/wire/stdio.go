package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// ServeStdio serves one client until in ends or ctx is done. The library keeps
// one stdio session for the whole process; here each connection has its own.
//
// When in ends, calls in progress have five seconds to finish before they are
// cancelled; when ctx is done, they are cancelled at once. ServeStdio returns
// when every call has ended and every reply is written, at the latest six
// seconds after the calls were cancelled: neither a call that does not end nor a
// client that does not read delays it longer. If out then still blocks and is an
// [io.Closer], it is closed.
func ServeStdio(ctx context.Context, host Host, in io.Reader, out io.Writer) error {
	ch, err := host.Open(Client{Transport: "stdio", Ends: "until this client closes", Origin: call.OriginClient})
	if err != nil {
		return err
	}
	defer ch.Close()
	// ctx must not cancel calls directly: a call is told that its connection
	// ended.
	calls, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(ErrEnded)
	c := NewConn(host, ch, out, Share{Slots: NewSlots(), Full: fullOutput, Most: maxOutput})
	err = c.serve(ctx, calls, in)
	end(ErrEnded)
	c.End(out)
	switch lost := c.out.failure(); {
	case errors.Is(lost, ErrNotRead):
		return errors.Join(err, lost)
	case lost != nil:
		host.Logger().Warn("the client went away before everything was written", "err", lost)
	}
	return err
}

// serve handles messages until the input ends, and then gives the calls time to
// finish. It stops early if ctx is done or the client does not read.
func (c *Conn) serve(ctx, calls context.Context, in io.Reader) error {
	lines := make(chan line)
	go readLines(calls, in, c.maxLine, lines)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.out.broken:
			return nil
		case l, ok := <-lines:
			if !ok {
				c.drain(ctx)
				return nil
			}
			if l.err != nil {
				c.drain(ctx)
				return fmt.Errorf("reading standard input: %w", l.err)
			}
			c.receive(calls, l)
		}
	}
}

// drain lets calls finish after the input has ended. The client can no longer
// answer questions, people elsewhere are told that it is gone, and streams end
// at once; calls get the drain time.
func (c *Conn) drain(ctx context.Context) {
	c.chat.Abandon()
	c.legacy.Close()
	c.cancelStreams()
	idle := c.idle()
	t := time.NewTimer(drain)
	defer t.Stop()
	select {
	case <-idle:
		c.out.close()
	case <-c.out.broken:
		return
	case <-t.C:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-c.out.done:
	case <-t.C:
	case <-ctx.Done():
	}
}
