package runner

import (
	"os"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/capture"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
)

// pipes are the ends of a run's standard streams.
type pipes struct {
	child          []*os.File // the program's ends
	stdin          *os.File   // ours; nil: the program reads an end of file
	stdout, stderr *os.File   // ours
}

// openPipes gives l its standard streams.
func openPipes(l *level.Launch) (_ *pipes, err error) {
	p := &pipes{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if len(l.Command.Stdin) > 0 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.stdin, l.Stdin = w, r
		p.child = append(p.child, r)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdout, l.Stdout = r, w
	p.child = append(p.child, w)
	if r, w, err = os.Pipe(); err != nil {
		return nil, err
	}
	p.stderr, l.Stderr = r, w
	p.child = append(p.child, w)
	return p, nil
}

// read copies the program's output to out. It closes the channel when no goroutine
// reads any more.
func (p *pipes) read(out *capture.Output) <-chan struct{} {
	var wg sync.WaitGroup
	wg.Go(func() { out.ReadStdout(p.stdout) })
	wg.Go(func() { out.ReadStderr(p.stderr) })
	return waiting(&wg)
}

// feed writes the program's input. It closes the channel when done.
func (p *pipes) feed(input []byte) <-chan struct{} {
	var wg sync.WaitGroup
	if p.stdin != nil {
		wg.Go(func() {
			// A program need not read its input.
			_, _ = p.stdin.Write(input)
			p.closeFeed()
		})
	}
	return waiting(&wg)
}

func waiting(wg *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

func (p *pipes) closeChildEnds() {
	for _, f := range p.child {
		_ = f.Close()
	}
	p.child = nil
}

func (p *pipes) closeReaders() {
	if p.stdout != nil {
		_ = p.stdout.Close()
	}
	if p.stderr != nil {
		_ = p.stderr.Close()
	}
}

func (p *pipes) closeFeed() {
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
}

// finish reads the rest of the output and closes our ends. It returns when no
// goroutine uses them any more. The readers end by themselves once every process of
// the run is gone; a process that got away can hold the pipes open.
func (p *pipes) finish(readers, feeder <-chan struct{}, drain time.Duration) {
	p.drained(readers, drain)
	p.closeReaders()
	<-readers
	p.closeFeed()
	<-feeder
}

func (p *pipes) close() {
	p.closeChildEnds()
	p.closeReaders()
	p.closeFeed()
}

// maxDrains is how many times the usual wait may be extended while there is output to
// read: on a busy machine the readers may not have had a turn yet.
const maxDrains = 20

// drained waits for the readers to finish: for d, and longer while there is still
// something to read.
func (p *pipes) drained(readers <-chan struct{}, d time.Duration) {
	t := time.NewTicker(d)
	defer t.Stop()
	for range maxDrains {
		select {
		case <-readers:
			return
		case <-t.C:
			if !holds(p.stdout) && !holds(p.stderr) {
				return
			}
		}
	}
}
