package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/scan"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

// shownTool is one tool in the form that show --json prints.
type shownTool struct {
	Name        string `json:"name"`
	Signature   string `json:"signature"`
	Description string `json:"description"`
	// Executable is false for a tool that is only declared; Reason says why.
	Executable bool   `json:"executable"`
	Reason     string `json:"reason,omitempty"`
	Cache      string `json:"cache,omitempty"` // the cache that it keeps between its runs
}

func (a *app) showCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show ID",
		Aliases: []string{"get"},
		Short:   "Show one pack: what it is, its files, its tools, its problems",
		Example: `  packs-mcp show git-helper --packs ~/packs
  packs-mcp show acme/billing/refunds --json`,
		Args:              cli.Needs(1, 1, "a pack's id"),
		ValidArgsFunction: cli.First(a.CompletePacks),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd.Context(), args[0], asJSON) },
	}
	a.PackFlags(cmd)
	cli.JSONFlag[shownPack](a.Env, cmd, &asJSON)
	return cmd
}

// shownPack is what show --json prints.
type shownPack struct {
	listedPack
	Entry  string   `json:"entry"`
	Docs   []string `json:"docs,omitempty"`
	Digest string   `json:"digest,omitempty"`
	Files  int      `json:"files"`
	Bytes  int64    `json:"bytes"`
	// Differs says that the pack was added, and that its bytes are not those in the
	// lock file.
	Differs  bool               `json:"differs,omitempty"`
	Findings []findings.Finding `json:"findings"` // of the scan
	Tools    []shownTool        `json:"tools"`
}

func (a *app) show(ctx context.Context, id string, asJSON bool) error {
	cfg, logger, err := a.Load()
	if err != nil {
		return err
	}
	lib, err := a.Library(ctx, cfg, logger)
	if err != nil {
		return err
	}
	catalog := lib.Catalog(ctx)
	p, err := catalog.Lookup(id)
	if err != nil {
		return err
	}
	files, added := cli.ToolFiles(cfg), cli.NewAdded(cfg)
	dir, err := p.OpenDir()
	if err == nil {
		defer dir.Close()
	}
	out := shownPack{listedPack: describe(p, dir, err, files, added, cfg.Mode), Entry: p.Entry, Docs: p.Docs(), Tools: []shownTool{}}
	var shown []*tools.Tool
	if out.set != nil {
		shown = out.set.Tools
	}
	progress := a.Progress("reading the pack's files")
	tree, err := digest(ctx, p)
	progress.Close()
	if err != nil {
		out.Problems = append(out.Problems, toolfiles.NotDigested(err))
	} else {
		out.Digest, out.Files, out.Bytes = tree.Digest, len(tree.Files), tree.Bytes
		out.Problems = append(out.Problems, toolfiles.DeniedProblems(p, tree, out.set)...)
		shown = toolfiles.WithoutDenied(p, tree, shown)
		out.Differs = added.From(p.Dir, tree.Digest).Differs
	}
	scanned, scanErr := scan.Of(ctx, catalog, p)
	from, _ := added.Pack(p.Dir)
	if out.Findings = scanned.Findings; from.Scan != nil {
		findings.Accept(out.Findings, from.Scan.Accepted)
	}
	if out.Findings == nil {
		out.Findings = []findings.Finding{}
	}
	for _, t := range shown {
		out.Tools = append(out.Tools, shownTool{
			Name: t.Name, Signature: t.Signature(), Description: t.Description,
			Executable: t.Command != nil, Reason: t.DeclaredOnly, Cache: t.Policy.Cache,
		})
	}
	out.Forbidden = rules.Forbids(cfg.Rules, "", p.ID)
	out.WithoutTool = slices.Contains(cli.WithoutTool(cfg, catalog), p)
	if asJSON {
		return cli.PrintJSON(a.Stdout, out)
	}
	w := a.Screen(a.Stdout)
	var table cli.Table
	row := func(name, text string) { table.Row(w.Style(cli.Bold, name), text) }
	row("pack", safetext.Line(out.PackID))
	row("name", safetext.Line(out.Name))
	row("description", safetext.Line(out.Description))
	if len(out.Tags) > 0 {
		row("tags", safetext.Line(strings.Join(out.Tags, ", ")))
	}
	for _, line := range [...]struct{ name, text string }{
		{"version", out.Version}, {"license", out.License}, {"compatibility", out.Compatible},
		{"allowed-tools", out.AllowedTools}, {"modes", strings.Join(out.Modes, ", ")},
	} {
		if line.text == "" {
			continue
		}
		note := ""
		if line.name == "allowed-tools" {
			note = " (grants nothing)"
		}
		row(line.name, safetext.Line(line.text)+note)
	}
	row("folder", safetext.Line(out.Path))
	row("entry", safetext.Line(out.Entry))
	state := stateOf(p, out.HiddenInMode)
	if out.Forbidden {
		state += "; a rule forbids everything about it"
	}
	if out.WithoutTool {
		state += fmt.Sprintf("; no tool of its own, since limits.enabled_tools is %d", cfg.Limits.EnabledTools)
	}
	row("state", state)
	row("trust", fmt.Sprintf("%s (%s)", out.Trust, out.Source))
	if from := out.Added; from != nil {
		row("source", fmt.Sprintf("%s %s", out.label(), safetext.Line(from.Resolved)))
		row("signed", "by "+safetext.Line(from.Signer))
		for _, line := range [...]struct{ name, text string }{{"visibility", from.Visibility}, {"created", from.CreatedAt}, {"updated", from.UpdatedAt}} {
			if line.text != "" {
				row(line.name, safetext.Line(line.text))
			}
		}
		if out.Differs {
			row("differs", "its bytes differ from those in packs.lock.json; compare: packs-mcp verify")
		}
	}
	switch {
	case scanErr != nil:
		row("scan", "it cannot be scanned: "+safetext.Line(scanErr.Error()))
	case findings.Summary(out.Findings) == findings.Nothing:
		row("scan", findings.Nothing)
	default:
		row("scan", fmt.Sprintf("%s; packs-mcp scan %s shows them", findings.Summary(out.Findings), out.PackID))
	}
	row("content", fmt.Sprintf("%d files, %d bytes, %s", out.Files, out.Bytes, out.Digest))
	for i, t := range out.Tools {
		label := ""
		if i == 0 {
			label = "tools"
		}
		signature := safetext.Line(t.Signature)
		if !t.Executable {
			signature += " (declared only: " + safetext.Line(t.Reason) + ")"
		}
		if t.Cache != "" {
			signature += " (keeps the cache " + safetext.Quote(t.Cache) + " between its runs)"
		}
		row(label, signature)
	}
	if err := table.Print(w); err != nil {
		return err
	}
	for _, d := range cli.FoldInfos(out.Problems) {
		w.Problem("", d)
	}
	return nil
}

func stateOf(p *packs.Pack, mode string) string {
	switch {
	case p.IsUnread():
		return "not read yet, since other packs of its folder are slow to read"
	case !p.Valid:
		return "invalid"
	case p.ShadowedBy != "":
		return "shadowed by " + safetext.Line(p.ShadowedBy)
	case !p.Attached:
		return "not attached; attach it with: packs-mcp attach " + p.ID
	case !p.Offered:
		return fmt.Sprintf("attached, but not offered: it is for %s, and the mode is %s", modesLine(p.Modes()), safetext.Line(mode))
	default:
		return "attached"
	}
}

func digest(ctx context.Context, p *packs.Pack) (*packfs.Tree, error) {
	dir, err := p.OpenDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Digest(ctx, new(packfs.DigestCache))
}
