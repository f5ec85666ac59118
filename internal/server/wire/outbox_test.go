package wire

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// gated is a writer that waits before each write.
type gated struct {
	gate chan struct{}
	buf  bytes.Buffer
}

func (g *gated) Write(p []byte) (int, error) {
	<-g.gate
	return g.buf.Write(p)
}

// A message that waits for room is queued after earlier ones, as soon as there
// is room, and also when its caller stops waiting.
func TestOutboxRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{gate: make(chan struct{})}
		o := newOutbox(g, fullOutput, maxOutput)
		if err := o.put(make([]byte, fullOutput)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- o.putWhenRoom(t.Context(), []byte("second"), func() {}) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("putWhenRoom did not wait: %v", err)
		default:
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := o.putWhenRoom(gone, []byte("first "), func() {}); err != nil {
			t.Errorf("putWhenRoom without waiting = %v, want nil", err)
		}
		g.gate <- struct{}{}
		if err := <-done; err != nil {
			t.Errorf("putWhenRoom = %v, want nil", err)
		}
		o.close()
		if err := o.put([]byte("late")); !errors.Is(err, ErrNoOutput) {
			t.Errorf("put after close = %v, want %v", err, ErrNoOutput)
		}
		close(g.gate)
		<-o.done
		if got := g.buf.String()[fullOutput:]; got != "first second" {
			t.Errorf("after the first was written %q, want %q", got, "first second")
		}
	})
}
