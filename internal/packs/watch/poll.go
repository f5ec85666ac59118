package watch

import (
	"context"
	"time"
)

// A poller sees nothing: it says that anything may have changed, from time to
// time.
type poller struct {
	every time.Duration
	timer *time.Timer
}

func newPoller(o Options) *poller {
	return &poller{every: o.Every, timer: time.NewTimer(o.Every)}
}

func (p *poller) wait(ctx context.Context) (dirs []string, ok bool) {
	select {
	case <-ctx.Done():
		return nil, false
	case <-p.timer.C:
		return nil, true
	}
}

func (p *poller) follow(_ Library, took time.Duration) (fresh []string, err error) {
	p.timer.Reset(max(p.every, 20*took))
	return nil, nil
}

func (p *poller) close() { p.timer.Stop() }
