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

// request forwards one request without TLS. It serializes the parsed request again, so
// the host cannot parse it differently, and the Host header is always the checked one.
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

// withPort returns the host of an http:// URL with an explicit port.
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
			r.Out.URL.RawQuery = r.In.URL.RawQuery // nothing here depends on it
			// After an upgrade, the proxy could not parse the protocol.
			r.Out.Header.Del("Connection")
			r.Out.Header.Del("Upgrade")
		},
		Transport: &http.Transport{
			DisableCompression: true, // pass the host's encoding on
			DisableKeepAlives:  true, // each connection is recorded with what it was for

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
