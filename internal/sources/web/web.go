// Package web makes the requests for packs from servers. It decides which servers may be
// asked, over which protocol, and with which credentials. It refuses private addresses,
// even behind a redirect or a name, unless the user named their hosts. It sends
// credentials only to the host that they are for, and bounds the size and time of
// answers.
//
// It does not interpret the bytes: its callers check that they are the expected ones.
package web

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

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// FetchTime bounds all requests for one address.
const FetchTime = 2 * time.Minute

// Bounds on requests.
const (
	connectTime  = 10 * time.Second
	maxRedirects = 5
	maxAnswer    = 512 << 20 // bytes of one answer
)

// Access says which servers may be asked, and with which credentials. Its zero value
// asks public servers over https without credentials.
type Access struct {
	Private     []string                                  // hosts that may have a private address, and may be asked over http
	Credentials func(host string) (user, password string) // nil, or two empty texts: none; a password without a user is a bearer token
	Logins      func() (*Logins, error)                   // for registries; called when one is asked; nil: none
	Rulebooks   string                                    // base URL of the rulebook API, such as https://host; "": none
	UserAgent   string
	Home        string // of the user: its .ssh has the known hosts and keys; "" allows no ssh
}

// A HostError says why a server is not contacted.
type HostError struct{ Host, Reason string }

func (e *HostError) Error() string { return fmt.Sprintf("%s is not asked: %s", e.Host, e.Reason) }

// Client returns an HTTP client that follows w. It checks every connection once its
// address is known, so no name and no redirect leads to a private address.
func (w *Access) Client() *http.Client { return w.ClientFor(nil) }

// ClientFor returns a client for a caller that sets the Authorization header itself:
// the header goes only where to allows it. With a nil to, w decides.
func (w *Access) ClientFor(to func(*http.Request) bool) *http.Client {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           w.dial,
		TLSHandshakeTimeout:   connectTime,
		ResponseHeaderTimeout: time.Minute,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // digests are of the bytes as sent
		MaxIdleConnsPerHost:   4,
	}
	return &http.Client{Transport: &guard{w, t, to}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
}

func (w *Access) IsPrivate(host string) bool {
	return slices.Contains(w.Private, strings.ToLower(host))
}

// A guard checks each request, redirected ones too, and gives credentials to the host
// that they are for and to no other.
type guard struct {
	w    *Access
	next http.RoundTripper
	to   func(*http.Request) bool // nil: w.Credentials decides
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Hostname()
	if req.URL.Scheme != "https" && !(req.URL.Scheme == "http" && g.w.IsPrivate(host)) {
		return nil, &HostError{host, "packs come over https; name the host in sources.private to allow http"}
	}
	if ip, err := netip.ParseAddr(host); err == nil && !g.w.IsPrivate(host) && !hosts.Public(ip) {
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
	res.Body = &boundedBody{res.Body, Bounded(res.Body)}
	return res, nil
}

type boundedBody struct {
	io.Closer
	io.Reader
}

// Bounded returns a reader that fails beyond the bound for one answer.
func Bounded(r io.Reader) io.Reader { return &bounded{r, maxAnswer} }

type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d MiB", stage.ErrTooLarge, maxAnswer>>20)
	}
	return n, err
}

const privateReason = "its address is private; name it in sources.private to allow that"

func (w *Access) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if isProxy(host) {
		return (&net.Dialer{Timeout: connectTime}).DialContext(ctx, network, addr)
	}
	return w.Dialer(host).DialContext(ctx, network, addr)
}

// Dialer returns a dialer for a host that may be asked. It checks the address once it
// is known.
func (w *Access) Dialer(host string) *net.Dialer {
	d := &net.Dialer{Timeout: connectTime}
	if !w.IsPrivate(host) {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !hosts.Public(at.Addr()) {
				return &HostError{host, privateReason}
			}
			return nil
		}
	}
	return d
}

// isProxy reports whether host is the proxy from the user's environment. The proxy
// then resolves names itself.
func isProxy(host string) bool {
	for _, scheme := range []string{"https", "http"} {
		u, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: "example.org"}})
		if err == nil && u != nil && u.Hostname() == host {
			return true
		}
	}
	return false
}

// Get fetches a document of at most max bytes. It also returns the final address
// after redirects.
func (w *Access) Get(ctx context.Context, at string, max int64) ([]byte, *url.URL, error) {
	var data bytes.Buffer
	from, err := w.copy(ctx, at, max, &data)
	return data.Bytes(), from, err
}

// A File is a file that is being fetched, in a folder of its own. If the process is
// killed, package temp removes it later.
type File struct {
	*os.File
	dir *temp.Folder
}

// NewFile makes an empty file, which Close removes.
func NewFile() (*File, error) {
	dir, err := temp.New("")
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir.Path, "fetched"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	return &File{f, dir}, nil
}

// Close closes and removes it.
func (f *File) Close() error { return errors.Join(f.File.Close(), f.dir.Remove()) }

// Download fetches an address into a new file, which the caller closes.
func (w *Access) Download(ctx context.Context, at string, max int64) (*File, *url.URL, error) {
	f, err := NewFile()
	if err != nil {
		return nil, nil, err
	}
	from, err := w.copy(ctx, at, max, f)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, from, nil
}

func (w *Access) copy(ctx context.Context, at string, max int64, to io.Writer) (*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	client := w.Client()
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", at, PlainError(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, &StatusError{at, res.StatusCode}
	}
	if err := CopyAtMost(to, res.Body, max); err != nil {
		return nil, fmt.Errorf("reading %s: %w", at, err)
	}
	return res.Request.URL, nil
}

// CopyAtMost copies all of r. More than max bytes are an error.
func CopyAtMost(to io.Writer, r io.Reader, max int64) error {
	n, err := io.Copy(to, io.LimitReader(r, max+1))
	if err == nil && n > max {
		err = fmt.Errorf("%w: it has more than %d bytes", stage.ErrTooLarge, max)
	}
	return err
}

// A StatusError is an HTTP answer with an unexpected status.
type StatusError struct {
	URL    string
	Status int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

// PlainError returns err without the method and address that net/http adds, if the
// cause is one of our errors.
func PlainError(err error) error {
	if he, ok := errors.AsType[*HostError](err); ok {
		return he
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}
