package egress

import (
	"context"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
)

var errNotHTTP = &refusal{"it is not asked for by CONNECT or by a whole http:// URL"}

// request passes on one request without TLS. It is written anew from what was understood
// of it, so the host that reads it cannot understand another, and its Host is always the
// one that was checked.
func (p *Proxy) request(w http.ResponseWriter, r *http.Request) {
	if r.URL.Scheme != "http" || r.URL.User != nil || r.URL.Opaque != "" {
		p.refuse(w, r.Host, errNotHTTP)
		return
	}
	h, err := p.allows(withPort(r.URL))
	if err != nil {
		p.refuse(w, withPort(r.URL), err)
		return
	}
	r.URL.Host = h.String()
	p.forward.ServeHTTP(w, r)
}

// withPort returns the host of an http:// URL with its port, written out.
func withPort(u *url.URL) string {
	if strings.Contains(u.Host, ":") {
		return u.Host
	}
	return u.Host + ":80"
}

func (p *Proxy) newForward(quiet *log.Logger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = strings.TrimSuffix(r.Out.URL.Host, ":80")
			r.Out.URL.RawQuery = r.In.URL.RawQuery // nothing here goes by it
			// After an upgrade we would no longer understand what is said.
			r.Out.Header.Del("Connection")
			r.Out.Header.Del("Upgrade")
		},
		Transport: &http.Transport{
			DisableCompression: true, // the answer is the host's own
			DisableKeepAlives:  true, // what a connection is recorded with is what it is for

			MaxResponseHeaderBytes: maxHeader,
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				h, err := p.allows(addr)
				if err != nil {
					return nil, err
				}
				return p.connect(ctx, hosts.Host{Name: h.Name, Port: h.Port})
			},
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.refuse(w, r.URL.Host, err) },
		ErrorLog:     quiet,
	}
}
