package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A silent address does not keep the program from the next one, and connections that
// come too late are closed.
func TestFirst(t *testing.T) {
	const silent, refuses, answers, slow = "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"
	errRefused := errors.New("connection refused")
	for _, c := range []struct {
		name  string
		to    []string
		won   string
		after time.Duration
	}{
		{"the first", []string{answers, silent}, answers, 0},
		{"a silent one before", []string{silent, answers}, answers, dialDelay},
		{"some that refuse", []string{refuses, refuses, answers}, answers, 0},
		{"both", []string{silent, refuses, answers}, answers, dialDelay},
		{"a slow one that is first after all", []string{slow, silent, silent}, slow, 2*dialDelay - time.Millisecond},
		{"a slow one that is late", []string{slow, slow, answers}, slow, 2*dialDelay - time.Millisecond},
		{"none", []string{silent, refuses}, "", dialTime},
		{"none but those that refuse", []string{refuses, refuses}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var others []net.Conn // the other ends; guarded by mu
				p := &Proxy{dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
					switch to.Addr().String() {
					case silent:
						<-ctx.Done()
						return nil, ctx.Err()
					case refuses:
						return nil, errRefused
					case slow:
						time.Sleep(2*dialDelay - time.Millisecond)
					}
					here, there := net.Pipe()
					mu.Lock()
					defer mu.Unlock()
					others = append(others, there)
					return here, nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), dialTime)
				defer cancel()
				var to []netip.AddrPort
				for _, a := range c.to {
					to = append(to, netip.AddrPortFrom(netip.MustParseAddr(a), 443))
				}
				begin := time.Now()
				won, err := p.first(ctx, to)
				took := time.Since(begin)
				switch {
				case c.won == "":
					if err == nil {
						t.Errorf("connected to %v", won.at)
					}
				case err != nil:
					t.Errorf("first = %v, want %s", err, c.won)
				case won.at.Addr().String() != c.won:
					t.Errorf("connected to %v, want %s", won.at, c.won)
				default:
					_ = won.Close()
				}
				// Attempts that were under way when the first succeeded end by themselves.
				if took < c.after || took > c.after+2*dialDelay {
					t.Errorf("it took %v, want about %v", took, c.after)
				}
				for _, there := range others {
					_ = there.SetReadDeadline(time.Now().Add(time.Second))
					if _, err := there.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("a connection that was not wanted is left: %v", err)
					}
				}
			})
		})
	}
}

// A run that connects continuously is slowed down; one that pauses is not.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		took := func(times int) time.Duration {
			from := time.Now()
			for range times {
				if err := p.wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(from)
		}
		if d := took(maxBurst); d != 0 {
			t.Errorf("the first %d took %v", maxBurst, d)
		}
		if d := took(32); d != time.Second {
			t.Errorf("32 more took %v, want a second", d)
		}
		time.Sleep(time.Hour)
		if d := took(maxBurst); d != 0 {
			t.Errorf("after an hour, %d took %v", maxBurst, d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := p.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait = %v, want the deadline", err)
		}
	})
}

// A program cannot make the proxy query a host or its name server faster than the limit.
func TestFlood(t *testing.T) {
	w := newWorld(t, allowedName+":80")
	const times = maxBurst + 16
	begin := time.Now()
	for range times {
		resp, err := w.client().Get("http://" + allowedName + "/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if took, least := time.Since(begin), 16*paceEvery; took < least {
		t.Errorf("%d connections took %v, want at least %v", times, took, least)
	}
	if contacts := w.close(); len(contacts) != 1 || contacts[0].Times != times || contacts[0].Refused != "" {
		t.Errorf("contacts %+v, want one, reached %d times", contacts, times)
	}
}
