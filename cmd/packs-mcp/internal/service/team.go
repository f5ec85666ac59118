package service

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/approvals/team"
	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/guard"
)

// asksPersons reports whether people with tokens can answer in their own terminals.
func asksPersons(cfg *config.Config) bool {
	return cfg.HTTP.Addr != "" && slices.Contains(cfg.Approval.Channels, config.ChannelTerminal)
}

// giver returns who a person that gave a kept answer is today. The groups of a fixed
// token are those that the configuration has now, and a person whose token was removed is
// nobody. Only the identity provider knows the groups that its people are in today, so
// theirs are those of the token that they answered with.
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
	if !asksPersons(cfg) {
		return nil
	}
	desk := team.New(func(p approvers.Person) team.Calls { return s.Gate.View(p) }, logger)
	return func(w http.ResponseWriter, r *http.Request, p guard.Person) {
		desk.Serve(w, r, approvers.Person{Name: p.Name, Groups: p.Groups})
	}
}
