package get

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/store"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

func (a *app) removeCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:               "remove ID...",
		Aliases:           []string{"delete"},
		Short:             "Remove added packs",
		Example:           "  packs-mcp remove anthropics/pdf",
		Args:              cli.Needs(1, -1, "a pack's id"),
		ValidArgsFunction: a.completeIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.remove(cmd.Context(), args, s) },
	}
	a.flags(cmd, &s, false)
	cli.JSONFlag[removedPacks](a.Env, cmd, &s.json)
	return cmd
}

func (a *app) remove(ctx context.Context, named []string, s settings) error {
	p, ids, err := a.chosen(s, named)
	if err != nil {
		return err
	}
	err = p.Change(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			dir, err := p.Path(id)
			if err != nil {
				return err
			}
			if err := a.record(p.cfg, audit.Entry{Event: audit.EventSource, Pack: id, Dir: dir, Channel: "command", Reason: "removed"}); err != nil {
				return err
			}
			if err := tx.Remove(id); err != nil {
				return err
			}
			if !s.json {
				fmt.Fprintf(a.Stdout, "removed %s\n", safetext.Line(id))
			}
		}
		return nil
	})
	if err == nil && s.json {
		err = cli.PrintJSON(a.Stdout, removedPacks{ids})
	}
	return err
}

// A state is what became of a pack of the lock file, for --json.
type state struct {
	ID    string `json:"id"`
	State string `json:"state"` // "same", "missing", "changed", "fetched", "failed"
	Error string `json:"error,omitempty"`
}

func (a *app) verifyCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "verify [ID...]",
		Short: "Compare added packs with their lock file",
		Long: `Compare the bytes of added packs with the digests in packs.lock.json, without asking any server. The
exit status is 2 when one is missing or has other bytes.`,
		Example:           "  packs-mcp verify",
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.sync(cmd.Context(), args, syncSettings{settings: s, check: true})
		},
	}
	a.flags(cmd, &s, false)
	cli.JSONFlag[syncedPacks](a.Env, cmd, &s.json)
	return cmd
}

// syncSettings are the flags of sync.
type syncSettings struct {
	settings
	check bool
}

func (a *app) syncCommand() *cobra.Command {
	var s syncSettings
	cmd := &cobra.Command{
		Use:   "sync [ID...]",
		Short: "Fetch what the lock file says, to the byte",
		Long: `Fetch the packs of packs.lock.json that are missing or have other bytes, each in the very state that
the file names. What a source has now that it had not then does not come in. The file itself does
not change, so a CI job and a colleague get the same bytes.`,
		Example: `  packs-mcp sync --scope project
  packs-mcp sync --scope project --check`,
		ValidArgsFunction: a.completeIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.sync(cmd.Context(), args, s) },
	}
	a.flags(cmd, &s.settings, false)
	cli.JSONFlag[syncedPacks](a.Env, cmd, &s.json)
	cmd.Flags().BoolVar(&s.check, "check", false, "fetch nothing; the exit status is 2 if something is missing or has other bytes")
	return cmd
}

func (a *app) sync(ctx context.Context, named []string, s syncSettings) error {
	p, ids, err := a.chosen(s.settings, named)
	if err != nil {
		return err
	}
	states, differ, failed := []state{}, false, []error{}
	for _, id := range ids {
		st := state{ID: id, State: "same"}
		ok, err := p.Holds(id, p.l.Packs[id])
		switch {
		case err == nil && ok:
		case s.check:
			differ = true
			st.State = "changed"
			if dir, perr := p.Path(id); perr == nil && !exists(dir) {
				st.State = "missing"
			}
		default:
			st.State = "fetched"
			if err = a.restore(ctx, p, id); err != nil {
				st.State = "failed"
			}
		}
		if err != nil {
			st.Error = err.Error()
			failed = append(failed, fmt.Errorf("%s: %w", safetext.Line(id), err))
		}
		states = append(states, st)
		if !s.json {
			fmt.Fprintf(a.Stdout, "%-8s %s\n", st.State, safetext.Line(id))
		}
	}
	if s.json {
		if err := cli.PrintJSON(a.Stdout, syncedPacks{states}); err != nil {
			return err
		}
	}
	err = errors.Join(failed...)
	switch {
	case err == nil && differ:
		return &cli.StatusError{Err: cli.ErrSaid, Status: statusDiffers}
	case errors.As(err, new(*sources.PinError)), errors.As(err, new(*trust.Refusal)):
		return &cli.StatusError{Err: err, Status: statusRefused}
	case err != nil && len(failed) < len(ids):
		return &cli.StatusError{Err: err, Status: statusPartly}
	}
	return err
}

// restore fetches the very state that the lock file names.
func (a *app) restore(ctx context.Context, p *place, id string) error {
	e := p.l.Packs[id]
	snap, _, err := p.open(ctx, e.Resolved)
	if err != nil {
		return err
	}
	defer snap.Close()
	it, err := p.stage(ctx, snap, e.Source, sources.Pack{Path: e.Path}, id)
	if err != nil {
		return err
	}
	defer it.close()
	if it.entry.Digest != e.Digest {
		return &sources.PinError{At: e.Resolved, Want: e.Digest, Got: it.entry.Digest}
	}
	if err := trust.Check(&e, it.entry.Signature); err != nil {
		return err
	}
	it.accept(nil)
	if err := attacks(id, it.found); err != nil {
		showFindings(a.Stderr, it.found)
		return err
	}
	return p.Change(ctx, func(tx *store.Tx) error {
		if now, ok := tx.Lock().Packs[id]; !ok || now.Digest != e.Digest {
			return errors.New("the lock file was changed meanwhile; run the command again")
		}
		if err := a.recordChange(p, id, e); err != nil {
			return err
		}
		return tx.Install(id, it.staged, e)
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
