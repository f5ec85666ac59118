package get

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/get/shown"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
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
	p, ids, err := a.chosen(ctx, s, named)
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

// A state is the outcome for a pack of the lock file, for --json.
type state struct {
	ID    string `json:"id"`
	State string `json:"state"` // "same", "missing", "changed", "fetched", "failed", "unproven": the signature does not fit, or could not be checked; of one that the lock file does not name: "extra", "removed", "adopted"
	Error string `json:"error,omitempty"`
}

func (a *app) verifyCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "verify [ID...]",
		Short: "Compare added packs with their lock file",
		Long: `Compare the bytes of added packs with the digests in packs.lock.json, and verify their signatures
again, by Sigstore and by SSH keys, without asking any server. The exit status is 2 when one is missing, has other
bytes, or is here and not in the lock file, and 4 when a signature does not fit or cannot be checked.`,
		Example:           "  packs-mcp verify",
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.sync(cmd.Context(), args, syncSettings{settings: s, check: true, proofs: true})
		},
	}
	a.flags(cmd, &s, false)
	cli.JSONFlag[syncedPacks](a.Env, cmd, &s.json)
	return cmd
}

// syncSettings are the flags of sync.
type syncSettings struct {
	settings
	check, frozen, adopt, prune, unsigned bool
	proofs                                bool // verify signatures again
}

func (a *app) syncCommand() *cobra.Command {
	var s syncSettings
	cmd := &cobra.Command{
		Use:   "sync [ID...]",
		Short: "Fetch what the lock file says, to the byte",
		Long: `Fetch the packs of packs.lock.json that are missing or have other bytes, each in the very state that
the file names. What a source has now that it had not then does not come in. The file itself does
not change, so a CI job and a colleague get the same bytes.

A pack that was added here, and that the file no longer names, is extra: --prune removes it, unless it
was edited, and --adopt puts it back into the file, after fetching it again from where it came. Both
show what they do, and ask. With --frozen, for CI, the file must be there, and an extra pack is an error.

The exit status is 2 with --check, or --frozen, when something differs or is extra, 3 when some of
several packs failed, and 4 when a policy refused one.`,
		Example: `  packs-mcp sync --scope project
  packs-mcp sync --scope project --frozen
  packs-mcp sync --scope project --prune`,
		ValidArgsFunction: a.completeIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.sync(cmd.Context(), args, s) },
	}
	a.flags(cmd, &s.settings, true)
	cli.JSONFlag[syncedPacks](a.Env, cmd, &s.json)
	f := cmd.Flags()
	f.BoolVar(&s.check, "check", false, "fetch nothing; the exit status is 2 if something is missing, has other bytes, or is extra")
	f.BoolVar(&s.frozen, "frozen", false, "fetch what is missing, and nothing else: no lock file, or a pack that it does not name, is an error")
	f.BoolVar(&s.prune, "prune", false, "remove added packs that the lock file no longer names")
	f.BoolVar(&s.adopt, "adopt", false, "put added packs that the lock file no longer names back into it")
	f.BoolVar(&s.unsigned, "allow-unsigned", false, "with --adopt: also those that nobody signed")
	return cmd
}

// misuse returns an error if flags do not go together.
func (s syncSettings) misuse(named []string) error {
	writes := s.adopt || s.prune
	var what string
	switch {
	case s.adopt && s.prune:
		what = "--adopt and --prune do not go together"
	case writes && (s.check || s.frozen):
		what = "--adopt and --prune change something, and --check and --frozen do not"
	case writes && len(named) > 0:
		what = "--adopt and --prune are about all packs that the lock file does not name"
	case s.unsigned && !s.adopt:
		what = "--allow-unsigned goes with --adopt"
	default:
		return nil
	}
	return &cli.UsageError{Err: errors.New(what), Hint: "see: packs-mcp sync --help"}
}

func (a *app) sync(ctx context.Context, named []string, s syncSettings) error {
	if err := s.misuse(named); err != nil {
		return err
	}
	p, ids, err := a.chosen(ctx, s.settings, named)
	if err != nil {
		return err
	}
	if s.frozen && !exists(p.LockFile) {
		return cli.WithHint(fmt.Errorf("there is no lock file %q", p.LockFile), "commit the one that packs-mcp add writes, or leave out --frozen")
	}
	states, differ, failed := []state{}, false, []error{}
	for _, id := range ids {
		st := state{ID: id, State: "same"}
		ok, err := p.Holds(id, p.l.Packs[id])
		switch {
		case err == nil && ok:
			if !s.proofs {
				break
			}
			if err = p.signatures.Proven(ctx, p.l.Packs[id], p.Proof); err != nil {
				st.State = "unproven"
			}
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
	if len(named) == 0 {
		extra, err := a.extra(ctx, p, s)
		if err != nil {
			failed = append(failed, err)
		}
		for _, st := range extra {
			differ = differ || st.State == stateExtra && (s.check || s.frozen)
			if !s.json {
				fmt.Fprintf(a.Stdout, "%-8s %s\n", st.State, safetext.Line(st.ID))
			}
		}
		if states = append(states, extra...); len(extra) > 0 && !s.adopt && !s.prune {
			fmt.Fprintf(a.Stderr, "%s here and not in the lock file: sync --prune removes, and sync --adopt keeps\n", cli.Counted(len(extra), "pack is", "packs are"))
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
	case isRefusal(err):
		return &cli.StatusError{Err: err, Status: cli.StatusRefused}
	case err != nil && len(failed) < len(states):
		return &cli.StatusError{Err: err, Status: statusPartly}
	}
	return err
}

// stateExtra is the state of an added pack that the lock file does not name.
const stateExtra = "extra"

// extra handles the packs that the lock file does not name, as the flags say.
func (a *app) extra(ctx context.Context, p *place, s syncSettings) ([]state, error) {
	strays, err := p.Strays(p.l)
	if err != nil || len(strays) == 0 {
		return nil, err
	}
	var all []state
	for _, stray := range strays {
		all = append(all, state{ID: stray.ID, State: stateExtra})
	}
	switch {
	case s.prune:
		return all, a.prune(ctx, p, strays, all, s.yes)
	case s.adopt:
		return all, a.adopt(ctx, p, strays, all, s)
	}
	return all, nil
}

// prune removes the packs that the lock file does not name, after a yes, and records
// that in their states.
func (a *app) prune(ctx context.Context, p *place, strays []store.Stray, all []state, yes bool) error {
	for _, stray := range strays {
		edited := ""
		if !stray.Same {
			edited = ", which was edited, and stays"
		}
		fmt.Fprintf(a.Stderr, "%s, from %s%s\n", safetext.Line(stray.ID), safetext.Line(stray.Entry.Resolved), edited)
	}
	if yes, err := a.mayDo(ctx, yes, fmt.Sprintf("Remove %s?", cli.Counted(len(strays), "pack", "packs"))); err != nil || !yes {
		return err
	}
	return p.Change(ctx, func(tx *store.Tx) error {
		var failed []error
		for i, stray := range strays {
			err := a.discard(p, tx, stray.ID)
			if err != nil {
				all[i].Error = err.Error()
				failed = append(failed, err)
				continue
			}
			all[i].State = "removed"
		}
		return errors.Join(failed...)
	})
}

func (a *app) discard(p *place, tx *store.Tx, id string) error {
	dir, err := p.Path(id)
	if err != nil {
		return err
	}
	if err := a.record(p.cfg, audit.Entry{Event: audit.EventSource, Pack: id, Dir: dir, Channel: "command", Reason: "removed"}); err != nil {
		return err
	}
	return tx.Discard(id)
}

// adopt adds packs to the lock file. Each is fetched again in the version in which it
// was added: the record beside the pack may come with a project, so it is not
// believed.
func (a *app) adopt(ctx context.Context, p *place, strays []store.Stray, all []state, s syncSettings) error {
	var failed []error
	var items []*item
	at := map[*item]int{}
	defer func() {
		for _, it := range items {
			_ = it.close()
		}
	}()
	for i, stray := range strays {
		it, err := p.again(ctx, stray)
		if err != nil {
			all[i].Error = err.Error()
			failed = append(failed, fmt.Errorf("%s: %w", safetext.Line(stray.ID), err))
			continue
		}
		items, at[it] = append(items, it), i
		it.accept(nil)
		a.show(it, false)
	}
	if len(items) > 0 {
		h := how{settings: s.settings, unsigned: s.unsigned, verb: "Adopt"}
		yes, err := a.agrees(ctx, items, h)
		if err != nil || !yes {
			return errors.Join(append(failed, err)...)
		}
		err = p.Change(ctx, func(tx *store.Tx) error {
			for _, it := range items {
				if err := a.install(p, tx, h, it); err != nil {
					all[at[it]].Error = err.Error()
					failed = append(failed, err)
					continue
				}
				all[at[it]].State = "adopted"
			}
			return nil
		})
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// again fetches a pack as it was added. The result must equal the pack that is here.
func (p *place) again(ctx context.Context, stray store.Stray) (*item, error) {
	// Updates look at the source, so the pack must really come from there.
	from, err := address.Parse(stray.Entry.Source)
	if err != nil {
		return nil, err
	}
	is, err := address.Parse(stray.Entry.Resolved)
	if err != nil {
		return nil, err
	}
	if here := is.Kind == address.Folder || is.Kind == address.Archive; is.Kind != from.Kind || !here && is.At != from.At {
		return nil, fmt.Errorf("it says that it came from %s, and is at %s; add it again", safetext.Line(stray.Entry.Source), safetext.Line(stray.Entry.Resolved))
	}
	snap, _, err := p.open(ctx, stray.Entry.Resolved)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	it, err := p.stage(ctx, snap, stray.Entry.Source, sources.Pack{Path: stray.Entry.Path}, stray.ID)
	if err != nil {
		return nil, err
	}
	if !stray.Same || it.entry.Digest != stray.Entry.Digest {
		err := &sources.PinError{At: stray.Entry.Resolved, Want: stray.Entry.Digest, Got: it.entry.Digest}
		if !stray.Same {
			return nil, errors.Join(errors.New("it was edited since it was added; add it again"), it.close())
		}
		return nil, errors.Join(err, it.close())
	}
	return it, nil
}

// restore fetches exactly the version that the lock file names.
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
		shown.Findings(a.Stderr, it.found)
		return err
	}
	return p.Change(ctx, func(tx *store.Tx) error {
		if now, ok := tx.Lock().Packs[id]; !ok || now.Digest != e.Digest {
			return errors.New("the lock file was changed meanwhile; run the command again")
		}
		if err := a.recordChange(p, id, e); err != nil {
			return err
		}
		it.entry = e
		return put(tx, it)
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
