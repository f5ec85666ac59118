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
	// maxDialed is how many addresses of one host are tried.
	maxDialed = 8

	// dialDelay is how long an address has before the next one is tried beside it. RFC
	// 8305 recommends it.
	dialDelay = 250 * time.Millisecond
)

// A dialed is what came of one address.
type dialed struct {
	net.Conn
	at  netip.AddrPort
	err error
}

// first connects to one of the addresses: to the first that answers. An address that fails
// is followed by the next at once, and one that is silent after dialDelay. It returns when
// no address is being tried any more.
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
	// have open. Then it may begin one in each paceEvery, and more wait: a run must not use
	// this machine to flood a host or its name servers.
	maxBurst  = maxConns
	paceEvery = time.Second / 32
)

// A pace spaces what happens more than maxBurst times. The zero value is ready. Safe for
// concurrent use.
type pace struct {
	mu   sync.Mutex
	next time.Time // when the next one would be due if all were spaced; guarded by mu
}

// wait returns when the next may happen, or with ctx's error.
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
