package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

func (a *app) attachCommand() *cobra.Command {
	var trust string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "attach ID...",
		Short: "Attach packs: models see them from now on",
		Long: `Attach packs, until they are detached. New chats begin with them, and running servers
follow at once. The attachment is for the pack in this very folder: another pack that comes
to have the same id gains nothing.`,
		Example: `  packs-mcp attach incident-triage
  packs-mcp attach project-notes --trust user`,
		Args:              cli.Needs(1, -1, "a pack's id"),
		ValidArgsFunction: a.CompletePacks,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.attach(cmd.Context(), args, trust, asJSON) },
	}
	a.PackFlags(cmd)
	cli.ChoiceVar(cmd, &trust, "trust", "", "user or untrusted: how far you vouch for these packs (default: as their folder says)", string(packs.TrustUser), string(packs.TrustUntrusted))
	cli.JSONFlag[changedPacks](a.Env, cmd, &asJSON)
	return cmd
}

// chosen returns the packs that a person named.
func (a *app) chosen(ctx context.Context, ids []string) ([]*packs.Pack, *config.Config, error) {
	cfg, logger, err := a.Load()
	if err != nil {
		return nil, nil, err
	}
	lib, err := a.Library(ctx, cfg, logger)
	if err != nil {
		return nil, nil, err
	}
	var found []*packs.Pack
	for _, id := range ids {
		p, err := lib.Catalog(ctx).Lookup(id)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, p)
	}
	return found, cfg, nil
}

// change changes what is attached, and records in the log that a person did it.
func (a *app) change(ctx context.Context, cfg *config.Config, event audit.Event, found []*packs.Pack, how func(*attach.Set, *packs.Pack)) error {
	log, err := cli.Log(ctx, cfg, cli.Writer(cfg), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	for _, p := range found {
		err = errors.Join(err, log.Append(audit.Entry{Event: event, Pack: p.ID, Dir: p.Dir, Channel: "command"}))
	}
	if err := errors.Join(err, log.Close()); err != nil {
		return err // nothing changes without a log entry
	}
	return cli.AttachedStore(cfg).Update(func(s *attach.Set) error {
		for _, p := range found {
			how(s, p)
		}
		return nil
	})
}

// changedPacks is what attach --json and detach --json print.
type changedPacks struct {
	Packs []changedPack `json:"packs"`
}

type changedPack struct {
	PackID   string `json:"pack_id"`
	Path     string `json:"path"`
	Attached bool   `json:"attached"`
}

// printChanged prints which packs were attached or detached.
func (a *app) printChanged(found []*packs.Pack, attached bool) error {
	all := changedPacks{Packs: []changedPack{}}
	for _, p := range found {
		all.Packs = append(all.Packs, changedPack{p.ID, p.Dir, attached})
	}
	return cli.PrintJSON(a.Stdout, all)
}

func (a *app) attach(ctx context.Context, ids []string, trust string, asJSON bool) error {
	found, cfg, err := a.chosen(ctx, ids)
	if err != nil {
		return err
	}
	for _, p := range found {
		if !p.Valid {
			for _, d := range p.Problems {
				a.Screen(a.Stderr).Problem("", d)
			}
			return cli.WithHint(fmt.Errorf("pack %q is not valid, so it cannot be attached", p.ID), "mend what is named above, and attach it again")
		}
	}
	err = a.change(ctx, cfg, audit.EventAttach, found, func(s *attach.Set, p *packs.Pack) {
		s.Attach(p.ID, attach.Entry{Dir: p.Dir, Trust: trust, Since: time.Now().UTC()})
	})
	if err != nil {
		return err
	}
	if asJSON {
		return a.printChanged(found, true)
	}
	for _, p := range found {
		fmt.Fprintf(a.Stdout, "attached %s (%s)\n", safetext.Line(p.ID), safetext.Line(p.Dir))
	}
	return nil
}

func (a *app) detachCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "detach ID...",
		Short:             "Detach packs: models no longer see them",
		Example:           "  packs-mcp detach incident-triage",
		Args:              cli.Needs(1, -1, "a pack's id"),
		ValidArgsFunction: a.CompletePacks,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.detach(cmd.Context(), args, asJSON) },
	}
	a.PackFlags(cmd)
	cli.JSONFlag[changedPacks](a.Env, cmd, &asJSON)
	return cmd
}

func (a *app) detach(ctx context.Context, ids []string, asJSON bool) error {
	found, cfg, err := a.chosen(ctx, ids)
	if err != nil {
		return err
	}
	err = a.change(ctx, cfg, audit.EventDetach, found, func(s *attach.Set, p *packs.Pack) {
		s.Detach(p.ID, time.Now().UTC())
	})
	if err != nil {
		return err
	}
	if asJSON {
		return a.printChanged(found, false)
	}
	for _, p := range found {
		fmt.Fprintf(a.Stdout, "detached %s\n", safetext.Line(p.ID))
	}
	return nil
}
