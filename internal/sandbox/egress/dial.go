package egress

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxDialed bounds how many addresses of one host are tried.
	maxDialed = 8

	// dialDelay is how long to wait for an address before trying the next one in
	// parallel, as RFC 8305 recommends.
	dialDelay = 250 * time.Millisecond
)

// A dialed is the result of connecting to one address.
type dialed struct {
	net.Conn
	at  netip.AddrPort
	err error
}

// first connects to the addresses and returns the first connection that succeeds. If an
// address fails, it tries the next at once; if one is silent, after dialDelay. It returns
// only when no attempt is under way.
func (p *Proxy) first(ctx context.Context, to []netip.AddrPort) (dialed, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to = to[:min(len(to), maxDialed)]
	results := make(chan dialed)
	var won dialed
	var problem error
	next, pending := time.NewTimer(0), 0
	defer next.Stop()
	for pending > 0 || len(to) > 0 && won.Conn == nil {
		select {
		case <-next.C:
			if len(to) == 0 || won.Conn != nil {
				continue
			}
			at := to[0]
			to = to[1:]
			pending++
			go func() {
				conn, err := p.dial(ctx, at)
				results <- dialed{conn, at, err}
			}()
			next.Reset(dialDelay)
		case d := <-results:
			pending--
			switch {
			case d.err != nil:
				problem = cmp.Or(problem, d.err)
				next.Reset(0)
			case won.Conn != nil:
				_ = d.Close()
			default:
				won = d
				cancel()
			}
		}
	}
	if won.Conn == nil {
		return dialed{}, problem
	}
	return won, nil
}

const (
	// maxBurst is how many connections to hosts a run may begin at once: as many as it may
	// have open. After that it may begin one per paceEvery, so that a run cannot use this
	// machine to flood a host or its name servers.
	maxBurst  = maxConns
	paceEvery = time.Second / 32
)

// A pace limits the rate of something after a burst of maxBurst. The zero value is
// ready to use. It is safe for concurrent use.
type pace struct {
	mu   sync.Mutex
	next time.Time // when the next is due if all are evenly spaced; guarded by mu
}

// wait blocks until the next may happen. It returns ctx's error if ctx ends first.
func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	after := p.next.Sub(now) - (maxBurst-1)*paceEvery
	p.next = p.next.Add(paceEvery)
	p.mu.Unlock()
	if after <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
