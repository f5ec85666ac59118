// Package egress lets a program without a network reach the hosts that its tool names,
// and no others. A [Proxy] is an HTTP proxy at the only address that the program can
// connect to. It takes CONNECT for TLS, and requests for absolute http:// URLs. It
// resolves names itself, and connects only to addresses on the internet, never to this
// machine or its networks. It also checks that what the program sends is meant for the
// host: the server name of TLS, and the Host header of HTTP.
//
// It does not decrypt TLS. So it does not see what the program sends to an allowed host,
// or through it to other hosts behind the same front end. It does not confine the program
// either: the sandbox makes sure that the program has no other way out.
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
	// maxConns is how many connections a program may have open; further ones wait. Each
	// takes two descriptors of the server.
	maxConns = 64

	// maxContacts bounds how many contacts that reached a host are recorded apart, and
	// likewise how many that did not. Beyond that, successful ones are counted for each
	// host, without an address, and all failed ones are one contact.
	maxContacts = 32

	// maxAddresses bounds how many of a name's addresses are examined: its owner may give
	// it thousands.
	maxAddresses = 64

	// dialTime bounds resolving a host's name and connecting to it.
	dialTime = 30 * time.Second

	// helloTime bounds how long a program may take to send its request.
	helloTime = 30 * time.Second

	maxHeader = 64 << 10 // bytes of the header of a request or a response
	maxTarget = 260      // bytes kept of the target that a program asks for: a full name and a port
)

// A Proxy serves one run. It is safe for concurrent use.
type Proxy struct {
	allowed []hosts.Host
	lookup  func(ctx context.Context, name string) ([]netip.Addr, error)
	dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	public  func(netip.Addr) bool
	here    func() ([]net.Addr, error) // returns the addresses of this machine
	pace    pace                       // limits the rate of connections to hosts

	server  *http.Server
	forward *httputil.ReverseProxy
	over    context.Context // done once Close is called
	end     context.CancelFunc
	work    sync.WaitGroup // the server, and each request

	mu       sync.Mutex
	closed   bool                  // no more requests begin; guarded by mu
	open     map[*counted]struct{} // connections to hosts; guarded by mu
	contacts []sandbox.Contact     // guarded by mu
}

// Start serves the program that connects to ln, until [Proxy.Close], which closes ln.
func Start(ln net.Listener, allowed []hosts.Host) *Proxy {
	var d net.Dialer
	p := &Proxy{
		lookup: func(ctx context.Context, name string) ([]netip.Addr, error) {
			// With a trailing dot, no search domain completes the name.
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
	quiet := log.New(io.Discard, "", 0) // requests are recorded as contacts instead
	p.forward = p.newForward(quiet)
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: helloTime, IdleTimeout: helloTime, MaxHeaderBytes: maxHeader,
		ErrorLog: quiet, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return p.over },
	}
	p.work.Go(func() { _ = p.server.Serve(netutil.LimitListener(ln, maxConns)) })
}

// Close ends every connection and waits until nothing is served any more. It returns
// the program's contacts, successful and refused, in the order of their first attempts.
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
	return slices.Clone(p.contacts) // including connections that succeeded too late to be used
}

// ServeHTTP serves one request of the program.
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

// clip bounds a target that the program sent.
func clip(s string) string { return s[:min(len(s), maxTarget)] }

// A refusal says, to the program and in the record, why a request was refused.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// The record's words for the most common refusals.
var (
	errNotNamed = &refusal{"the tool does not name this host"}
	errPrivate  = &refusal{"its name leads to an address that is not on the internet, or to this machine or its network"}
)

// outside reports whether an address belongs neither to this machine, whose addresses
// and networks are here, nor to one of those networks. Machines there may trust their
// neighbors more than the internet, and so may this machine itself.
func outside(a netip.Addr, here []net.Addr) bool {
	return !slices.ContainsFunc(here, func(own net.Addr) bool {
		n, ok := own.(*net.IPNet)
		return !ok || n.Contains(hosts.Plain(a).AsSlice())
	})
}

// connect connects to an address of h. It checks each address before using it, and
// resolves the name only once.
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

// allows returns the host of a target if the tool names it.
func (p *Proxy) allows(target string) (hosts.Host, error) {
	h, err := hosts.Parse(target)
	if err != nil || !slices.Contains(p.allowed, h) {
		return hosts.Host{}, errNotNamed
	}
	return h, nil
}

// note counts the result of one attempt to reach a host.
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
		// Many refusals must not keep successful contacts out of the record.
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
			c.Address = "" // a tool names few hosts, so one contact for each suffices
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

// reason returns the record's words for an error.
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
