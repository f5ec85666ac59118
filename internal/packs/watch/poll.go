package watch

import (
	"context"
	"time"
)

// A poller sees nothing but the library's files: of the rest it says that
// anything may have changed, from time to time.
type poller struct {
	every  time.Duration // and never less than 20 times of what a look takes
	timer  *time.Timer
	ticker *time.Ticker // of looks at the files
	files  files
}

func newPoller(o Options) *poller {
	return &poller{every: o.Every, timer: time.NewTimer(o.Every), ticker: time.NewTicker(lookEvery)}
}

func (p *poller) wait(ctx context.Context) (_ news, ok bool) {
	for {
		select {
		case <-ctx.Done():
			return news{}, false
		case <-p.timer.C:
			return news{file: p.files.changed()}, true
		case <-p.ticker.C:
			if p.files.changed() {
				return news{dirs: []string{}, file: true}, true
			}
		}
	}
}

func (p *poller) follow(_ context.Context, lib Library, took time.Duration) (fresh []string, err error) {
	if took > 0 {
		p.timer.Reset(max(p.every, 20*took))
	}
	if p.files == nil {
		p.files = filesOf(lib)
	}
	return nil, nil
}

func (p *poller) close() {
	p.timer.Stop()
	p.ticker.Stop()
}
