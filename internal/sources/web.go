package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// Bounds of what is asked of servers.
const (
	connectTime  = 10 * time.Second
	maxRedirects = 5
	maxAnswer    = 512 << 20       // bytes of one answer
	fetchTime    = 2 * time.Minute // for all that one address stands for
)

// Web says which servers may be asked, and as whom. Its zero value asks public
// servers, over https, as nobody.
type Web struct {
	Private     []string                                  // hosts that may have a private address, and may be asked over http
	Credentials func(host string) (user, password string) // nil, or two empty texts: none; a password without a user is a bearer token
	Logins      func() (*Logins, error)                   // for registries, which call it when one is asked; nil: none
	Rulebooks   string                                    // where the API of rulebooks is, such as https://host; "": nowhere
	UserAgent   string
	Home        string // of the user: its .ssh says which hosts are known, and who asks; "" allows no ssh
}

// A HostError says why a server is not asked.
type HostError struct{ Host, Reason string }

func (e *HostError) Error() string { return fmt.Sprintf("%s is not asked: %s", e.Host, e.Reason) }

// client asks servers as w says. Every connection is checked when its address is
// known, so no name and no redirect leads to a private address.
func (w *Web) client() *http.Client { return w.clientFor(nil) }

// clientFor is client, where the caller says itself who asks: an Authorization header
// goes where to allows it. A nil to leaves it to w.
func (w *Web) clientFor(to func(*http.Request) bool) *http.Client {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           w.dial,
		TLSHandshakeTimeout:   connectTime,
		ResponseHeaderTimeout: time.Minute,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // bytes are what their digest is for
		MaxIdleConnsPerHost:   4,
	}
	return &http.Client{Transport: &guard{w, t, to}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
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
	to   func(*http.Request) bool // nil: w.Credentials counts
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Hostname()
	if req.URL.Scheme != "https" && !(req.URL.Scheme == "http" && g.w.isPrivate(host)) {
		return nil, &HostError{host, "packs come over https; name the host in sources.private to allow http"}
	}
	if ip, err := netip.ParseAddr(host); err == nil && !g.w.isPrivate(host) && !public(ip) {
		return nil, &HostError{host, privateReason}
	}
	known := g.to != nil && g.to(req)
	if g.to != nil && !known && req.Method == http.MethodPost { // its body can be a password
		return nil, &HostError{host, "another server named it for the password, which is sent to no other host than its own"}
	}
	req = req.Clone(req.Context())
	if !known {
		req.Header.Del("Authorization")
	}
	req.Header.Del("Cookie")
	if g.w.UserAgent != "" {
		req.Header.Set("User-Agent", g.w.UserAgent)
	}
	if g.w.Credentials != nil && g.to == nil {
		switch user, password := g.w.Credentials(host); {
		case user != "":
			req.SetBasicAuth(user, password)
		case password != "":
			req.Header.Set("Authorization", "Bearer "+password)
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
	if isProxy(host) {
		return (&net.Dialer{Timeout: connectTime}).DialContext(ctx, network, addr)
	}
	return w.dialer(host).DialContext(ctx, network, addr)
}

// dialer connects to a host that may be asked. The address is checked when it is known.
func (w *Web) dialer(host string) *net.Dialer {
	d := &net.Dialer{Timeout: connectTime}
	if !w.isPrivate(host) {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !public(at.Addr()) {
				return &HostError{host, privateReason}
			}
			return nil
		}
	}
	return d
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

// specialRange reports whether an address is in a range that is not part of the internet
// and that [netip.Addr] has no method for (IANA's registries of special-purpose addresses).
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

// get asks for a document of at most max bytes, and returns the address that it came
// from after redirects as well.
func (w *Web) get(ctx context.Context, at string, max int64) ([]byte, *url.URL, error) {
	var data bytes.Buffer
	from, err := w.copy(ctx, at, max, &data)
	return data.Bytes(), from, err
}

// fetched is a file that is being fetched, in a folder of its own. Of a killed process,
// package temp removes it.
type fetched struct {
	*os.File
	dir *temp.Folder
}

func newFetched() (*fetched, error) {
	dir, err := temp.New("")
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir.Path, "fetched"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	return &fetched{f, dir}, nil
}

func (f *fetched) remove() error { return errors.Join(f.Close(), f.dir.Remove()) }

// download puts what is at an address into a file of its own, which the caller removes.
func (w *Web) download(ctx context.Context, at string, max int64) (*fetched, *url.URL, error) {
	f, err := newFetched()
	if err != nil {
		return nil, nil, err
	}
	from, err := w.copy(ctx, at, max, f)
	if err != nil {
		return nil, nil, errors.Join(err, f.remove())
	}
	return f, from, nil
}

func (w *Web) copy(ctx context.Context, at string, max int64, to io.Writer) (*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	client := w.client()
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", at, plainError(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, &StatusError{at, res.StatusCode}
	}
	if err := copyAtMost(to, res.Body, max); err != nil {
		return nil, fmt.Errorf("reading %s: %w", at, err)
	}
	return res.Request.URL, nil
}

// copyAtMost copies all of r, which has at most max bytes.
func copyAtMost(to io.Writer, r io.Reader, max int64) error {
	n, err := io.Copy(to, io.LimitReader(r, max+1))
	if err == nil && n > max {
		err = fmt.Errorf("%w: it has more than %d bytes", stage.ErrTooLarge, max)
	}
	return err
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
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}
