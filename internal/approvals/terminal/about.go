package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
)

// An About is what a team's server says of how people log in to it. Its texts are the
// server's own: they need not be safe to show.
type About struct {
	Server   string // its URL, as [Remote] writes it
	Resource string // what tokens for it are for
	Issuer   string // the identity provider
	Client   string // the name under which the provider knows this program; may be empty
	Scopes   []string
}

// ErrNoLogin means that a server names no identity provider.
var ErrNoLogin = errors.New("this server has no identity provider: its people have tokens")

const maxAbout = 64 << 10 // bytes

// AboutOf asks a team's server where its people log in (RFC 9728). The address is as for
// [Remote]. What the server answers has to be about that address, so that a token for
// another server is never sent to it.
func AboutOf(ctx context.Context, address string) (*About, error) {
	s, err := Remote(address, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := s.get(ctx, s.base+control.PathPending)
	if err != nil {
		return nil, err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		return nil, fmt.Errorf("%s answers with the status %d; is it the address of a packs-mcp server?", s.Name, res.StatusCode)
	}
	at, ok := metadataOf(res.Header.Values("WWW-Authenticate"))
	if !ok {
		return nil, ErrNoLogin
	}
	if u, err := url.Parse(at); err != nil || !strings.HasPrefix(at, s.Name+"/") || u.User != nil {
		return nil, fmt.Errorf("%s says that it is described elsewhere, at %q: take the address that its operator gave you", s.Name, oneLine(at))
	}
	if res, err = s.get(ctx, at); err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := readAtMost(res.Body, maxAbout)
	if err != nil {
		return nil, err
	}
	var said struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Client   string   `json:"packs_mcp_client_id"`
		Scopes   []string `json:"scopes_supported"`
	}
	if res.StatusCode != http.StatusOK || json.Unmarshal(data, &said) != nil || len(said.Issuers) == 0 {
		return nil, fmt.Errorf("%s does not say where its people log in", s.Name)
	}
	if said.Resource != s.Name+"/mcp" {
		return nil, fmt.Errorf("%s says that it is %q: use the address that people are to use", s.Name, oneLine(strings.TrimSuffix(said.Resource, "/mcp")))
	}
	return &About{Server: s.Name, Resource: said.Resource, Issuer: said.Issuers[0], Client: said.Client, Scopes: said.Scopes}, nil
}

// get asks for a page of the server's without a token.
func (s *Server) get(ctx context.Context, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	return res, nil
}

// metadataOf returns the URL of the metadata that a challenge for a bearer token names.
func metadataOf(challenges []string) (string, bool) {
	for _, c := range challenges {
		_, after, ok := strings.Cut(c, `resource_metadata="`)
		at, _, closed := strings.Cut(after, `"`)
		if ok && closed && strings.HasPrefix(c, "Bearer ") {
			return at, true
		}
	}
	return "", false
}
