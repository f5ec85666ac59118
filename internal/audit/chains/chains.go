// Package chains keeps an audit log of several servers in a store that they share.
//
// Each start of a server has a chain of its own, made of the lines that package audit
// defines: nobody waits for another writer, and none can be taken for another. What a
// server appends at once is a block, which ends with a seal: a line that names the chain
// and its last entry, signed with a key that the replicas share. Every few seconds one of
// them appends a checkpoint to one more chain. It names the newest entry of each chain
// that has grown, and the checkpoint before it, and is signed too.
//
// So who can write to the engine can add nothing, change nothing, and remove nothing that
// a checkpoint names without being noticed by [Verify], which reads an [Export] and needs
// neither the store nor the secret. What came after the last checkpoint can be cut off.
// Who puts the whole store back to an earlier state is found out by the hash of a later
// checkpoint that was noted elsewhere.
package chains

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

const (
	// maxBlock is how many bytes one append to the store has: NATS takes messages of
	// up to 1 MiB.
	maxBlock = 512 << 10
	// checkpointEvery is how often the servers together write a checkpoint, if
	// something was written.
	checkpointEvery = 10 * time.Second
	// checkpoints is the name of the chain of checkpoints. No server has it: names of
	// servers have a dot.
	checkpoints = "checkpoints"
)

// Options configure a log. Store and Keys are required.
type Options struct {
	Store store.Store // the log closes it
	Keys  Keys
	// Server names this server in its lines, and is the beginning of its chain's name.
	Server string
	// Every is how often there is a checkpoint; 0 is ten seconds.
	Every  time.Duration
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
}

// A Log appends to a chain of its own. It is an [audit.Writer], and safe for concurrent
// use. Entries that are appended at the same time go to the store together.
type Log struct {
	o     Options
	wake  chan struct{} // has a token when there is something to write
	stop  context.CancelFunc
	tasks sync.WaitGroup
	watch *watch // its task's own, and then Close's

	mu     sync.Mutex
	queue  []*waiting
	closed bool

	// The writer's own.
	name  string // of the chain
	pos   uint64 // of its last block
	chain audit.Chain
	left  string // how the chain before it ended; "" if there was none
}

// waiting is an entry that its caller waits for.
type waiting struct {
	entry audit.Entry
	done  chan error
}

// Open returns a log with a new chain, and writes checkpoints until it is closed. It
// does not reach the store before the first entry.
func Open(o Options) *Log {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Every <= 0 {
		o.Every = checkpointEvery
	}
	o.Server = nameOf(o.Server)
	ctx, stop := context.WithCancel(context.Background())
	l := &Log{o: o, wake: make(chan struct{}, 1), stop: stop}
	l.name = l.newName()
	l.watch = newWatch(o)
	l.tasks.Go(func() { l.watch.run(ctx) })
	l.tasks.Go(func() { l.run(ctx) })
	return l
}

// nameOf returns the characters of a server's name that the name of a chain may have.
func nameOf(server string) string {
	const most = 60
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, server)
	if name == "" {
		name = "server"
	}
	return name[:min(len(name), most)]
}

// newName returns a name that no chain has.
func (l *Log) newName() string {
	return l.o.Server + "." + strings.ToLower(rand.Text()[:10])
}

// Append returns when the store has the entry. An error matches [audit.ErrUnavailable],
// [audit.ErrTooLong] or [audit.ErrClosed]; the entry may be in the log even so, and the
// caller must not do what it records.
func (l *Log) Append(e audit.Entry) error { return l.AppendAll([]audit.Entry{e}) }

// AppendLazy is Append: what is only in the memory of a server is lost with it.
func (l *Log) AppendLazy(e audit.Entry) error { return l.Append(e) }

// AppendAll is Append for several entries. If it returns an error, some of them may be in
// the log.
func (l *Log) AppendAll(entries []audit.Entry) error {
	all := make([]*waiting, 0, len(entries))
	for _, e := range entries {
		if e.Time.IsZero() {
			e.Time = l.o.Now()
		}
		if e.Server == "" {
			e.Server = l.o.Server
		}
		all = append(all, &waiting{e, make(chan error, 1)})
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return audit.ErrClosed
	}
	l.queue = append(l.queue, all...)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	var failed error
	for _, w := range all {
		if err := <-w.done; err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// Failures is 0: each append waits for the store.
func (l *Log) Failures() int { return 0 }

// Ready returns why the store cannot be reached now.
func (l *Log) Ready(ctx context.Context) error {
	_, _, err := l.o.Store.Last(ctx, checkpoints)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Close writes what is queued, and a last checkpoint, and closes the store.
func (l *Log) Close() error {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if was {
		return nil
	}
	l.stop()
	l.tasks.Wait()
	err := l.watch.last(l.name)
	l.o.Store.Close()
	if err != nil {
		return fmt.Errorf("writing the last checkpoint of the audit log: %w", err)
	}
	return nil
}

// run writes what is queued until the log is closed.
func (l *Log) run(ctx context.Context) {
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			l.writeAll()
			return
		}
		l.writeAll()
	}
}

func (l *Log) writeAll() {
	l.mu.Lock()
	all := l.queue
	l.queue = nil
	l.mu.Unlock()
	for len(all) > 0 {
		all = all[l.write(all):]
	}
}

// write writes a block of the first entries, tells their callers, and returns how many
// they were.
func (l *Log) write(all []*waiting) (n int) {
	// If the store says that nothing was written, since the chain is not as this server
	// left it, the entries begin another chain.
	const tries = 3
	for try := 1; ; try++ {
		taken, chain, block, n := l.block(all)
		err := l.put(&chain, block)
		if err != nil {
			l.leave(err)
			if errors.Is(err, store.ErrConflict) && try < tries {
				continue
			}
			err = fmt.Errorf("%w: %w", audit.ErrUnavailable, err)
		}
		for _, w := range taken {
			w.done <- err
		}
		return n
	}
}

// block makes the next block: the lines of the first n of these entries, of which those
// that are not taken were refused. There is at least one, however long it is.
func (l *Log) block(all []*waiting) (taken []*waiting, chain audit.Chain, block []byte, n int) {
	chain = l.chain
	if l.left != "" {
		e := audit.Entry{Time: l.o.Now(), Event: audit.EventRecovered, Server: l.o.Server, Reason: l.left}
		if line, err := chain.Line(&e); err == nil {
			block = line
		}
	}
	for _, w := range all {
		next := chain
		line, err := next.Line(&w.entry)
		switch {
		case err != nil:
			w.done <- err
		case len(taken) > 0 && len(block)+len(line) > maxBlock:
			return taken, chain, block, n
		default:
			chain, block, taken = next, append(block, line...), append(taken, w)
		}
		n++
	}
	return taken, chain, block, n
}

// put appends a block with its seal to the chain, in pieces if it is long.
func (l *Log) put(chain *audit.Chain, block []byte) error {
	if len(block) == 0 {
		return nil
	}
	seq, hash := chain.Last()
	block = append(block, l.o.Keys.sign(sealed{Chain: l.name, Seq: seq, Last: hash})...)
	pos := l.pos
	for len(block) > 0 {
		// The seal is in the last piece as a whole, where readers look for it.
		n := min(len(block), maxBlock)
		if rest := len(block) - n; rest > 0 && rest < maxSeal {
			n -= maxSeal
		}
		next, err := l.o.Store.Append(context.Background(), l.name, pos, block[:n])
		if err != nil {
			return err
		}
		pos, block = next, block[n:]
	}
	l.pos, l.chain, l.left = pos, *chain, ""
	return nil
}

// leave begins another chain, since it is not known how this one ends.
func (l *Log) leave(err error) {
	seq, _ := l.chain.Last()
	if seq > 0 {
		l.left = fmt.Sprintf("this goes on from entry %d of the chain %s; the store may have more there that was not acknowledged", seq, l.name)
	}
	l.o.Logger.Error("a line of the audit log was not written; what it records is denied", "chain", l.name, "err", err)
	l.name, l.pos, l.chain = l.newName(), 0, audit.Chain{}
}
