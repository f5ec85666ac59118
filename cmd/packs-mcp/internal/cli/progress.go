package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// patience is how long to wait before showing progress.
	patience = time.Second
	// redrawn is how often the progress is redrawn.
	redrawn = 200 * time.Millisecond
)

// A Progress shows the progress of something that takes longer than a second, on
// standard error if that is a terminal. It leaves nothing on the screen.
type Progress struct {
	what        string
	screen      *Screen
	done, total atomic.Int64

	stop    chan struct{}
	stopped sync.WaitGroup
	close   sync.Once
}

// Progress begins to show the progress of something: "checking packs". The caller
// closes it before it prints anything else.
func (env *Env) Progress(what string) *Progress {
	p := &Progress{what: what, screen: env.Screen(env.Stderr), stop: make(chan struct{})}
	if p.screen.terminal == nil {
		return p
	}
	p.stopped.Go(func() {
		first := time.NewTimer(patience)
		defer first.Stop()
		ticks := time.NewTicker(redrawn)
		defer ticks.Stop()
		p.show(first.C, ticks.C, time.Now())
	})
	return p
}

// Of says how many of all are done.
func (p *Progress) Of(done, all int) {
	p.total.Store(int64(all))
	p.done.Store(int64(done))
}

// Close removes what is shown.
func (p *Progress) Close() {
	p.close.Do(func() { close(p.stop) })
	p.stopped.Wait()
}

// show waits for the first tick, and redraws with each later one until Close.
func (p *Progress) show(first, ticks <-chan time.Time, began time.Time) {
	out := p.screen.Unbroken()
	select {
	case <-first:
	case <-p.stop:
		return
	}
	if !p.screen.Moves() {
		fmt.Fprintf(out, "This takes a moment: %s.\n", p.what) // once, since it stays
		<-p.stop
		return
	}
	const clear = "\r\x1b[K"
	defer func() { _, _ = io.WriteString(out, clear) }()
	for {
		// Move the cursor back, so that a message printed in between is readable.
		fmt.Fprint(out, clear+p.screen.Style(Faint, p.text(time.Since(began)))+"\r")
		select {
		case <-ticks:
		case <-p.stop:
			return
		}
	}
}

// text returns the line that is drawn.
func (p *Progress) text(took time.Duration) string {
	done, total := p.done.Load(), p.total.Load()
	text := fmt.Sprintf("%s, %d s", p.what, took/time.Second)
	if total > 0 {
		const cells = 20
		full := int(cells * min(done, total) / total)
		text = fmt.Sprintf("[%s%s] %s, %d of %d", strings.Repeat("#", full), strings.Repeat(".", cells-full), p.what, done, total)
	}
	if most := p.screen.Width() - 1; most > 0 && len(text) > most {
		text = text[:most]
	}
	return text
}
