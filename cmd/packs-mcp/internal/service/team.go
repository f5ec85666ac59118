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
