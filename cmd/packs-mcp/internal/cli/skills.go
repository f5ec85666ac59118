package cli

import (
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
)

// WithoutTool returns the attached packs that get no tool of their own because of
// limits.enabled_tools. There are none unless the configuration exposes skills.
func WithoutTool(cfg *config.Config, c *packs.Catalog) []*packs.Pack {
	if cfg.Expose != config.ExposeSkills {
		return nil
	}
	_, rest := offer.New(offer.Options{
		Forbids: func(kind call.Kind, id string) bool { return rules.Forbids(cfg.Rules, string(kind), id) },
	}).OwnTools(c, cfg.Limits.EnabledTools)
	return rest
}

// SayWithoutTool says that packs get no tool of their own, and what to do about it;
// empty if there are none.
func SayWithoutTool(cfg *config.Config, rest []*packs.Pack) (message, hint string) {
	const most = 5
	if len(rest) == 0 {
		return "", ""
	}
	var ids []string
	for _, p := range rest[:min(len(rest), most)] {
		ids = append(ids, p.ID)
	}
	if more := len(rest) - len(ids); more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("no tool of its own for %s, since limits.enabled_tools is %d: %s",
			diag.Count(len(rest), "attached pack"), cfg.Limits.EnabledTools, strings.Join(ids, ", ")),
		"raise limits.enabled_tools, or detach packs that you do not need; capability_packs_open_docs opens every attached pack"
}
