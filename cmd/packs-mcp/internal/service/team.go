package service

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/signin"
	"github.com/packs-mcp/packs-mcp/internal/approvals/team"
	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/oidc/login"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/guard"
)

// asksPersons reports whether people can answer in their own terminals, or on a page in
// their own browsers.
func asksPersons(cfg *config.Config) bool { return hasTerminals(cfg) || hasPage(cfg) }

func hasTerminals(cfg *config.Config) bool {
	return cfg.HTTP.Addr != "" && slices.Contains(cfg.Approval.Channels, config.ChannelTerminal)
}

// hasPage reports whether the configuration lets people log in with a browser.
func hasPage(cfg *config.Config) bool {
	o := cfg.HTTP.OIDC
	return cfg.HTTP.Addr != "" && o.Issuer != "" && o.Client != "" && cfg.HTTP.PublicURL != "" && slices.Contains(cfg.Approval.Channels, config.ChannelPage)
}

// Page returns the handler for people's browsers; nil if the configuration has no page for
// them. tokens verifies access tokens.
func (s *Service) Page(cfg *config.Config, version string, tokens *oidc.Verifier, logger *slog.Logger) (func(http.ResponseWriter, *http.Request, httpd.Enter), error) {
	if !hasPage(cfg) {
		return nil, nil
	}
	o := cfg.HTTP.OIDC
	in, err := signin.New(signin.Options{
		PublicURL: cfg.HTTP.PublicURL, Verify: tokens.Verify, Logger: logger, Shared: s.shared, Keys: s.logins, Revoked: s.revoked,
		Provider: login.Options{Issuer: o.Issuer, Client: o.Client, Secret: o.Secret, Scopes: o.Scopes, Resource: cfg.HTTP.PublicURL + "/mcp"},
	})
	if err != nil {
		return nil, err
	}
	desk := team.New(func(p approvers.Person) team.Calls { return s.Gate.View(p) }, logger)
	return func(w http.ResponseWriter, r *http.Request, enter httpd.Enter) {
		session, done, err := in.Session(r)
		if session == nil {
			in.Enter(w, r, err)
			return
		}
		defer done()
		id := session.Person()
		r, who, leave := enter(guard.Person{Key: id.Key, Name: id.Person, Groups: id.Groups, Until: id.Until})
		if leave == nil {
			return
		}
		defer leave()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer session.Ends(cancel)()
		r = r.WithContext(ctx)
		if in.Serve(w, r, session) {
			desk.ServePage(w, r, approvers.Person{Name: who.Name, Groups: who.Groups}, version)
		}
	}, nil
}

// revoked reports whether an operator took back the answers of a person since a time, on
// all servers. It is for those that share a store.
func (s *Service) revoked(person string, since time.Time) bool {
	return s.ended(grants.Grant{Person: person, By: &approvers.Person{Name: person}, Since: since}, 0)
}

// Verified returns what is told of each good token of the identity provider.
func (s *Service) Verified(logger *slog.Logger) func(context.Context, *oidc.Identity) {
	return (&leavers{grants: s.grants, logger: logger}).look
}

// giver returns the current state of a person who gave a stored answer. For a fixed token,
// the groups are those in the configuration now; if the token was removed, the person no
// longer exists. For people of an identity provider, only the provider knows their current
// groups, so the groups are those in the token with which they answered, without those that
// a later token did not have; see [leavers].
func giver(cfg *config.Config) func(approvers.Person) (approvers.Person, bool) {
	fixed := make(map[string][]string, len(cfg.HTTP.Tokens))
	for _, t := range cfg.HTTP.Tokens {
		fixed[t.Name] = t.Groups
	}
	provided := cfg.HTTP.OIDC.Issuer != ""
	return func(p approvers.Person) (approvers.Person, bool) {
		if groups, ok := fixed[p.Name]; ok {
			p.Groups = groups
			return p, true
		}
		return p, provided && approvers.IsProvided(p.Name)
	}
}

// Approvals returns the handler of a person's requests about waiting calls, over
// HTTP; nil if the configuration does not let terminals answer. Nobody counts as the
// operator there: behind a proxy on this machine, others look like its user.
func (s *Service) Approvals(cfg *config.Config, logger *slog.Logger) func(http.ResponseWriter, *http.Request, guard.Person) {
	if !hasTerminals(cfg) {
		return nil
	}
	desk := team.New(func(p approvers.Person) team.Calls { return s.Gate.View(p) }, logger)
	return func(w http.ResponseWriter, r *http.Request, p guard.Person) {
		desk.Serve(w, r, approvers.Person{Name: p.Name, Groups: p.Groups})
	}
}
