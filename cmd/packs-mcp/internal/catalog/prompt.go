package catalog

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// The blocks that prompt prints.
const (
	blockPacks           = "packs"
	blockAvailableSkills = "available_skills"
	blockSkills          = "skills"
)

func (a *app) promptCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "prompt",
		Short: "Print the block about the attached packs, as models see it",
		Long: `Print the block about the attached packs, for a prompt of your own:

  packs             what this server's instructions hold, within their bound
  available_skills  the XML block of Agent Skills, all packs
  skills            a <skills> block, one line each with source and tags, all packs`,
		Example: `  packs-mcp prompt --packs ~/packs
  packs-mcp prompt --format available_skills`,
		Args: cli.Misuse(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.prompt(cmd.Context(), format) },
	}
	a.PackFlags(cmd)
	cli.ChoiceVar(cmd, &format, "format", blockPacks, "packs, available_skills or skills", blockPacks, blockAvailableSkills, blockSkills)
	return cmd
}

func (a *app) prompt(ctx context.Context, format string) error {
	cfg, logger, err := a.Load()
	if err != nil {
		return err
	}
	lib, err := a.Library(ctx, cfg, logger)
	if err != nil {
		return err
	}
	forbidden := func(id string) bool { return rules.Forbids(cfg.Rules, "", id) }
	var text string
	switch format {
	case blockAvailableSkills:
		text = availableSkills(forModels(lib.Catalog(ctx), forbidden))
	case blockSkills:
		text = skills(forModels(lib.Catalog(ctx), forbidden), cli.NewAdded(cfg))
	default:
		text = offer.New(offer.Options{
			Forbids:     func(_ call.Kind, id string) bool { return forbidden(id) },
			Exposed:     func(plain string) string { return toolname.Exposed(plain, cfg.ToolNames == config.Dotted) },
			Origin:      cli.NewAdded(cfg).Origin,
			Description: cfg.Limits.Description,
		}).Metadata(lib.Catalog(ctx), cli.ToolFiles(cfg).Once())
	}
	_, err = fmt.Fprintln(a.Stdout, text)
	return err
}

// forModels returns the packs that a model is told about.
func forModels(c *packs.Catalog, forbidden func(id string) bool) []*packs.Pack {
	var all []*packs.Pack
	for _, p := range c.Attached() {
		if !p.Frontmatter.DisableModelInvocation() && !forbidden(p.ID) {
			all = append(all, p)
		}
	}
	return all
}

// availableSkills returns the block of Agent Skills: each value on its own line,
// escaped as in the reference library.
func availableSkills(all []*packs.Pack) string {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;")
	var b strings.Builder
	b.WriteString("<available_skills>\n")
	for _, p := range all {
		entry := p.Dir
		if !p.Loose {
			entry = filepath.Join(p.Dir, filepath.FromSlash(p.Entry))
		}
		b.WriteString("<skill>\n")
		for _, v := range [][2]string{{"name", p.Name}, {"description", p.Description}, {"location", entry}} {
			fmt.Fprintf(&b, "<%s>\n%s\n</%s>\n", v[0], escape.Replace(safetext.Text(v[1])), v[0])
		}
		b.WriteString("</skill>\n")
	}
	b.WriteString("</available_skills>")
	return b.String()
}

// skills returns the block of the unified skills. Text that would close the
// block is escaped.
func skills(all []*packs.Pack, added *cli.Added) string {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	var b strings.Builder
	b.WriteString("<skills>\n# Available Skills:\n")
	for _, p := range all {
		from, _ := added.Pack(p.Dir)
		b.WriteString(escape.Replace(skillLine(from.Provider.Label(), p.ID, "", cli.OneLine(p.Description, math.MaxInt), p.Tags())))
	}
	b.WriteString("</skills>")
	return b.String()
}

// skillLine returns one pack on one line, in the format of the unified skills.
func skillLine(label, id, state, description string, tags []string) string {
	list := ""
	if len(tags) > 0 {
		list = " [" + safetext.Line(strings.Join(tags, ", ")) + "]"
	}
	return fmt.Sprintf("- %s %s%s: %s%s\n", label, id, state, description, list)
}
