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
// one stdio session for the whole process; this one is the connection's own.
//
// At the end of in, calls under way have five seconds to finish before they
// are cancelled; when ctx is done they are cancelled at once. It returns when
// every call has ended and every reply is written, at the latest six seconds
// after the calls were cancelled: neither a call that does not end nor a client
// that does not read keeps it longer. If out then still blocks and is an
// [io.Closer], it is closed.
func ServeStdio(ctx context.Context, host Host, in io.Reader, out io.Writer) error {
	ch, err := host.Open(Client{Transport: "stdio", Ends: "until this client closes", Origin: call.OriginClient})
	if err != nil {
		return err
	}
	defer ch.Close()
	// Not ended by ctx itself: a call is told that its connection ended.
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

// serve takes messages until the input ends, and then gives the calls their
// time; or until there is no more use in it.
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

// drain lets the calls finish whose input has ended. The client can no longer answer
// questions, a person elsewhere is told that it is gone, and streams have nobody to
// wait for; calls get the drain time.
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
