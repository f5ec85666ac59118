package watch

import (
	"context"
	"time"
)

// A poller watches only the library's files. From time to time it says that anything
// else may have changed.
type poller struct {
	every  time.Duration // and at least 20 times as long as a look takes
	timer  *time.Timer
	ticker *time.Ticker // of looks at the files
	files  files
	due    bool // it is time to look at everything
	file   bool // one of the files has changed
}

func newPoller(o Options) *poller {
	return &poller{every: o.Every, timer: time.NewTimer(o.Every), ticker: time.NewTicker(lookEvery)}
}

func (p *poller) wait(ctx context.Context) (_ news, ok bool) {
	for {
		switch {
		case p.due:
			seen := news{file: p.files.changed() || p.file}
			p.due, p.file = false, false
			return seen, true
		case p.file:
			p.file = false
			return news{dirs: []string{}, file: true}, true
		}
		select {
		case <-ctx.Done():
			return news{}, false
		case <-p.timer.C:
			p.due = true
		case <-p.ticker.C:
			p.file = p.files.changed()
		}
	}
}

func (p *poller) waiting() bool {
	select {
	case <-p.timer.C:
		p.due = true
	default:
	}
	select {
	case <-p.ticker.C:
		p.file = p.files.changed() || p.file
	default:
	}
	return p.due || p.file
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
