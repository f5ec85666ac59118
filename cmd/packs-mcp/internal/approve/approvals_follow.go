package approve

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
)

// lookAgain is how often follow searches for new servers.
const lookAgain = time.Second

// A bulletin is an update about a server's calls.
type bulletin struct {
	server *terminal.Server
	calls  []control.Call // all that wait
	ended  bool           // the server sends no more updates
	why    string         // why the server refuses; empty if it has ended
}

// follow sends updates about the calls of the servers, and of servers that start
// later, until ctx ends. Then it closes the channel, and its goroutines have
// ended.
func follow(ctx context.Context, runDirs []string, servers []*terminal.Server) <-chan bulletin {
	f := &follower{updates: make(chan bulletin), followed: make(map[string]bool)}
	for _, s := range servers {
		f.start(ctx, s)
	}
	go func() {
		defer close(f.updates)
		defer f.wg.Wait()
		again := time.NewTicker(lookAgain)
		defer again.Stop()
		for {
			for _, s := range servers {
				if s.PID == 0 { // a team's, which no folder announces
					f.start(ctx, s)
				}
			}
			// Servers that cannot be used were reported when the command began.
			if found, err := terminal.Find(ctx, runDirs...); err == nil {
				for _, s := range found.Servers {
					f.start(ctx, s)
				}
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return f.updates
}

type follower struct {
	updates chan bulletin
	wg      sync.WaitGroup

	mu       sync.Mutex
	followed map[string]bool // :: id of a server → a goroutine listens to it
}

// start listens to a server, unless a goroutine already does.
func (f *follower) start(ctx context.Context, s *terminal.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followed[s.ID()] || s.PageOnly {
		return
	}
	f.followed[s.ID()] = true
	f.wg.Go(func() {
		defer func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.followed, s.ID())
		}()
		for calls, err := range s.Watch(ctx) {
			u := bulletin{server: s, calls: calls}
			if err != nil {
				u.ended = true
				if r, ok := errors.AsType[*terminal.RefusedError](err); ok {
					u.why = r.Message
				}
			}
			select {
			case f.updates <- u:
			case <-ctx.Done():
				return
			}
		}
	})
}
