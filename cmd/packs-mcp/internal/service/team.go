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

// asksPersons reports whether persons with tokens can answer in their own terminals.
func asksPersons(cfg *config.Config) bool {
	return cfg.HTTP.Addr != "" && slices.Contains(cfg.Approval.Channels, config.ChannelTerminal)
}

// Approvals returns what answers a person's requests about the calls that wait, over
// HTTP; nil if the configuration does not let terminals answer. Nobody is the operator
// there: a proxy on this machine makes others look like its user.
func (s *Service) Approvals(cfg *config.Config, logger *slog.Logger) func(http.ResponseWriter, *http.Request, guard.Person) {
	if !asksPersons(cfg) {
		return nil
	}
	desk := team.New(func(p approvers.Person) team.Calls { return s.Gate.View(p) }, logger)
	return func(w http.ResponseWriter, r *http.Request, p guard.Person) {
		desk.Serve(w, r, approvers.Person{Name: p.Name, Groups: p.Groups})
	}
}
