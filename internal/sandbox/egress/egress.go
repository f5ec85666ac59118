// Package egress lets a program that has no network reach the hosts that its tool names,
// and no others. A [Proxy] answers on the one address that the program can connect to,
// as an HTTP proxy: CONNECT for TLS, and requests for whole http:// URLs. It looks the name
// up itself, connects to addresses of the internet only that are neither this machine's
// nor of its networks, and checks that what the program says to the other side is meant
// for that host: the server name of TLS, the Host of HTTP.
//
// It does not look into TLS: what is said to a host that is allowed, and through it to
// others behind the same front, is not seen. It does not confine the program either: that the program has
// no other way out is the sandbox's work.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

const (
	// maxConns is how many connections of a program are open at a time; each takes two
	// descriptors of the server. More wait.
	maxConns = 64

	// maxContacts is how many different contacts that reached a host are told apart, and
	// how many that did not. Of the former, the rest are counted together for each host,
	// without an address; the rest of the latter are one contact.
	maxContacts = 32

	// maxAddresses is how many of a name's addresses are looked at: its owner may give it
	// thousands.
	maxAddresses = 64

	// dialTime bounds looking a host up and connecting to it.
	dialTime = 30 * time.Second

	// helloTime bounds how long a program may take to say what it wants.
	helloTime = 30 * time.Second

	maxHeader = 64 << 10 // bytes of the head of one request, and of its answer
	maxTarget = 260      // bytes kept of what a program says it wants to reach: a whole name and a port
)

// A Proxy serves one run. Safe for concurrent use.
type Proxy struct {
	allowed []hosts.Host
	lookup  func(ctx context.Context, name string) ([]netip.Addr, error)
	dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	public  func(netip.Addr) bool
	here    func() ([]net.Addr, error) // the addresses of this machine
	pace    pace                       // of connections to hosts

	server  *http.Server
	forward *httputil.ReverseProxy
	over    context.Context // done when Close was called
	end     context.CancelFunc
	work    sync.WaitGroup // what serves, and each request

	mu       sync.Mutex
	closed   bool                  // no request begins any more; guarded by mu
	open     map[*counted]struct{} // connections to hosts; guarded by mu
	contacts []sandbox.Contact     // guarded by mu
}

// Start serves the program behind ln until [Proxy.Close], which closes ln.
func Start(ln net.Listener, allowed []hosts.Host) *Proxy {
	var d net.Dialer
	p := &Proxy{
		lookup: func(ctx context.Context, name string) ([]netip.Addr, error) {
			// A dot at the end: no search domain completes the name.
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
		},
		dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", to.String())
		},
		public: hosts.Public,
		here:   net.InterfaceAddrs,
	}
	p.start(ln, allowed)
	return p
}

func (p *Proxy) start(ln net.Listener, allowed []hosts.Host) {
	p.allowed, p.open = allowed, make(map[*counted]struct{})
	p.over, p.end = context.WithCancel(context.Background())
	quiet := log.New(io.Discard, "", 0) // what it says of itself is in the record
	p.forward = p.newForward(quiet)
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: helloTime, IdleTimeout: helloTime, MaxHeaderBytes: maxHeader,
		ErrorLog: quiet, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return p.over },
	}
	p.work.Go(func() { _ = p.server.Serve(netutil.LimitListener(ln, maxConns)) })
}

// Close ends every connection, waits until nothing is served any more, and returns what
// the program reached and what it was refused, in the order of the first times.
func (p *Proxy) Close() []sandbox.Contact {
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	p.end()
	_ = p.server.Close()
	for _, c := range open {
		_ = c.Close()
	}
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.contacts) // a connection that came too late to be used is still noted
}

// ServeHTTP answers one request of the program.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.work.Add(1)
	}
	p.mu.Unlock()
	if closed {
		return
	}
	defer p.work.Done()
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
	} else {
		p.request(w, r)
	}
}

// refuse records that a host was not reached, and tells the program.
func (p *Proxy) refuse(w http.ResponseWriter, target string, err error) {
	why := reason(err)
	p.note(sandbox.Contact{Host: clip(target), Refused: why})
	status := http.StatusBadGateway
	if _, ok := errors.AsType[*refusal](err); ok {
		status = http.StatusForbidden
	}
	var may []string
	for _, h := range p.allowed {
		may = append(may, h.String())
	}
	http.Error(w, fmt.Sprintf("packs-mcp: %s; this tool may reach %s", why, strings.Join(may, ", ")), status)
}

// clip keeps what a program says of a host short.
func clip(s string) string { return s[:min(len(s), maxTarget)] }

// A refusal is why something was not let out, in words for the program and the record.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// errRefused are what the record says of the most usual refusals.
var (
	errNotNamed = &refusal{"the tool does not name this host"}
	errPrivate  = &refusal{"its name leads to an address that is not on the internet, or to this machine or its network"}
)

// outside reports whether an address is neither of this machine, whose addresses with
// their networks are here, nor of such a network. What is there may trust its neighbors,
// and this machine itself more than the internet.
func outside(a netip.Addr, here []net.Addr) bool {
	return !slices.ContainsFunc(here, func(own net.Addr) bool {
		n, ok := own.(*net.IPNet)
		return !ok || n.Contains(hosts.Plain(a).AsSlice())
	})
}

// connect connects to an address of h. Each address is checked before it is used, and
// none is looked up again.
func (p *Proxy) connect(ctx context.Context, h hosts.Host) (*counted, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if err := p.pace.wait(ctx); err != nil {
		return nil, err
	}
	found, err := p.lookup(ctx, h.Name)
	if err != nil {
		return nil, err
	}
	here, err := p.here()
	if err != nil {
		return nil, err
	}
	found = found[:min(len(found), maxAddresses)]
	public := slices.DeleteFunc(slices.Clone(found), func(a netip.Addr) bool { return !p.public(a) || !outside(a, here) })
	if len(public) == 0 {
		return nil, errPrivate
	}
	var to []netip.AddrPort
	for _, a := range public {
		to = append(to, netip.AddrPortFrom(a.Unmap(), h.Port))
	}
	won, err := p.first(ctx, to)
	if err != nil {
		return nil, err
	}
	return p.keep(h, won.at.Addr(), won.Conn)
}

// allows returns the host that a program asks for, if its tool names it.
func (p *Proxy) allows(target string) (hosts.Host, error) {
	h, err := hosts.Parse(target)
	if err != nil || !slices.Contains(p.allowed, h) {
		return hosts.Host{}, errNotNamed
	}
	return h, nil
}

// note counts what became of one try to reach a host.
func (p *Proxy) note(c sandbox.Contact) {
	p.mu.Lock()
	defer p.mu.Unlock()
	find := func() int {
		return slices.IndexFunc(p.contacts, func(have sandbox.Contact) bool {
			return have.Host == c.Host && have.Address == c.Address && have.Refused == c.Refused
		})
	}
	i := find()
	if i < 0 {
		// A program that is refused often must not hide what it reached.
		count, last := 0, -1
		for j, have := range p.contacts {
			if (have.Refused == "") == (c.Refused == "") {
				count, last = count+1, j
			}
		}
		switch {
		case count < maxContacts:
		case c.Refused != "":
			p.contacts[last].Host, p.contacts[last].Address = sandbox.OtherHosts, "" // stands for the rest
			i = last
		default:
			c.Address = "" // the hosts that a tool names are few
			i = find()
		}
	}
	if i < 0 {
		p.contacts = append(p.contacts, sandbox.Contact{Host: c.Host, Address: c.Address, Refused: c.Refused})
		i = len(p.contacts) - 1
	}
	p.contacts[i].Times += max(c.Times, 1)
	p.contacts[i].Sent += c.Sent
	p.contacts[i].Received += c.Received
}

// reason is what the record says of an error.
func reason(err error) string {
	var r *refusal
	var dns *net.DNSError
	switch {
	case errors.As(err, &r):
		return r.why
	case errors.As(err, &dns) && dns.IsNotFound:
		return "there is no such host"
	case errors.As(err, &dns):
		return "its name could not be looked up"
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	default:
		return "it could not be reached"
	}
}
