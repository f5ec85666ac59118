package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Bounds of what is asked of servers.
const (
	connectTime  = 10 * time.Second
	maxRedirects = 5
	maxAnswer    = 512 << 20 // bytes of one answer
)

// Web says which servers may be asked, and as whom. Its zero value asks public
// servers, over https, as nobody.
type Web struct {
	Private     []string                                  // hosts that may have a private address, and may be asked over http
	Credentials func(host string) (user, password string) // nil, or two empty texts: none
	UserAgent   string
}

// A HostError says why a server is not asked.
type HostError struct{ Host, Reason string }

func (e *HostError) Error() string { return fmt.Sprintf("%s is not asked: %s", e.Host, e.Reason) }

// client asks servers as w says. Every connection is checked when its address is
// known, so no name and no redirect leads to a private address.
func (w *Web) client() *http.Client {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           w.dial,
		TLSHandshakeTimeout:   connectTime,
		ResponseHeaderTimeout: time.Minute,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   4,
	}
	return &http.Client{Transport: &guard{w, t}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
}

func (w *Web) isPrivate(host string) bool { return slices.Contains(w.Private, strings.ToLower(host)) }

// A guard checks each request, redirected ones too, and gives credentials to the host
// that they are for and to no other.
type guard struct {
	w    *Web
	next http.RoundTripper
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Hostname()
	if req.URL.Scheme != "https" && !(req.URL.Scheme == "http" && g.w.isPrivate(host)) {
		return nil, &HostError{host, "packs come over https; name the host in sources.private to allow http"}
	}
	if ip, err := netip.ParseAddr(host); err == nil && !g.w.isPrivate(host) && !public(ip) {
		return nil, &HostError{host, privateReason}
	}
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	req.Header.Del("Cookie")
	if g.w.UserAgent != "" {
		req.Header.Set("User-Agent", g.w.UserAgent)
	}
	if g.w.Credentials != nil {
		if user, password := g.w.Credentials(host); user != "" || password != "" {
			req.SetBasicAuth(user, password)
		}
	}
	res, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.ContentLength > maxAnswer {
		_ = res.Body.Close()
		return nil, fmt.Errorf("%s answers with %d MiB, and %d is the limit", host, res.ContentLength>>20, maxAnswer>>20)
	}
	res.Body = &boundedBody{res.Body, &bounded{res.Body, maxAnswer}}
	return res, nil
}

type boundedBody struct {
	io.Closer
	io.Reader
}

const privateReason = "its address is private; name it in sources.private to allow that"

func (w *Web) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: connectTime}
	if !w.isPrivate(host) && !isProxy(host) {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !public(at.Addr()) {
				return &HostError{host, privateReason}
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, addr)
}

// isProxy reports whether a host is the one that the user's environment sends requests
// through. It resolves names itself then.
func isProxy(host string) bool {
	for _, scheme := range []string{"https", "http"} {
		u, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: "example.org"}})
		if err == nil && u != nil && u.Hostname() == host {
			return true
		}
	}
	return false
}

// special are the ranges that [netip.Addr] has no question for and that are not the
// internet (IANA's registries of special-purpose addresses).
func specialRange(ip netip.Addr) bool {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16",
	} {
		if netip.MustParsePrefix(text).Contains(ip) {
			return true
		}
	}
	return false
}

// public reports whether an address is one of the internet.
func public(ip netip.Addr) bool {
	ip = ip.Unmap()
	if nat64 := netip.MustParsePrefix("64:ff9b::/96"); nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && ip.Zone() == "" && !specialRange(ip)
}

// get asks for a document of at most max bytes.
func (w *Web) get(ctx context.Context, at string, max int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	res, err := w.client().Do(req)
	if err != nil {
		return nil, plainError(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, &StatusError{at, res.StatusCode}
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, max+1))
	if err == nil && int64(len(data)) > max {
		err = fmt.Errorf("%s answers with more than %d bytes", at, max)
	}
	return data, err
}

// A StatusError is an answer that is not what was asked for.
type StatusError struct {
	URL    string
	Status int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

// plainError is an error of a request without the method and address around it, where
// it is one of ours.
func plainError(err error) error {
	if he, ok := errors.AsType[*HostError](err); ok {
		return he
	}
	return err
}
