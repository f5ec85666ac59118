package conns

import (
	"net"
	"net/netip"
	"testing"
)

// A fakeConn has a given remote address.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (f *fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.from), 1))
}

func (f *fakeConn) Close() error {
	f.closed = true
	return nil
}

// Only the address with the most connections makes room.
func TestStrangersByAddress(t *testing.T) {
	cs := New(true)
	cs.StrangersOf, cs.Strangers = 3, 5
	open := func(from string) *fakeConn {
		f := &fakeConn{from: from}
		cs.begin(f)
		return f
	}
	honest := open("192.0.2.1")
	a1, a2, a3 := open("2001:db8::1"), open("2001:db8::2"), open("2001:db8::ffff:1")
	a4 := open("2001:db8::3") // the same network as the three before
	if !a1.closed || a2.closed || a3.closed || a4.closed || honest.closed {
		t.Error("of one network's connections, the oldest did not make room for its fourth")
	}
	mapped := open("::ffff:192.0.2.1") // five in all
	other := open("198.51.100.7")
	if !a2.closed || honest.closed || mapped.closed || other.closed {
		t.Error("the network with most connections did not make room for another's")
	}
	for range 100 {
		open("2001:db8::1")
	}
	if honest.closed || mapped.closed || other.closed {
		t.Error("one network shut others out")
	}
}

// Connections are counted while they are open, for the one who used them last.
func TestCounts(t *testing.T) {
	cs := New(true)
	ada, grace := new(int), new(int)
	want := func(strangers, known, ofAda, ofGrace int) {
		t.Helper()
		if len(cs.strangers) != strangers || cs.known != known || cs.of[ada] != ofAda || cs.of[grace] != ofGrace {
			t.Errorf("%d strangers, %d known, %d of Ada and %d of Grace, want %d, %d, %d and %d",
				len(cs.strangers), cs.known, cs.of[ada], cs.of[grace], strangers, known, ofAda, ofGrace)
		}
	}
	first, _ := cs.begin(&fakeConn{from: "192.0.2.1"})
	second, _ := cs.begin(&fakeConn{from: "192.0.2.1"})
	want(2, 0, 0, 0)
	again := cs.Identify(first, ada)
	if !cs.Identify(first, ada) || !again {
		t.Error("there is no room for Ada's")
	}
	want(1, 1, 1, 0)
	if !cs.Identify(first, grace) {
		t.Error("there is no room for Grace's")
	}
	want(1, 1, 0, 1)
	for range 2 {
		cs.end(first)
		cs.end(second)
	}
	want(0, 0, 0, 0)
	if cs.Identify(first, ada) {
		t.Error("a closed connection has an owner")
	}
}
