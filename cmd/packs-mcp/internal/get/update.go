package get

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/store"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// ids returns the packs that are named, or all.
func (p *place) ids(named []string) ([]string, error) {
	all := slices.Sorted(maps.Keys(p.l.Packs))
	if len(named) == 0 {
		return all, nil
	}
	for _, id := range named {
		if _, ok := p.l.Packs[id]; !ok {
			err := fmt.Errorf("%q was not added: it is not in %q", safetext.Line(id), p.LockFile)
			if n := near.Names(id, all, 3); len(n) > 0 {
				return nil, cli.WithHint(err, "did you mean %s?", strings.Join(n, " or "))
			}
			return nil, err
		}
	}
	return named, nil
}

// chosen opens the store, and returns the packs that are named, or all.
func (a *app) chosen(ctx context.Context, s settings, named []string) (*place, []string, error) {
	p, err := a.place(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	ids, err := p.ids(named)
	return p, ids, err
}

// A look compares what a source has now with the lock file's entry.
type look struct {
	ID    string `json:"id"`
	Pin   string `json:"pin"`
	Now   string `json:"now"`
	Older string `json:"older,omitempty"` // how what the source has now is older: "version 1.9.0, here version 1.10.0"
	snap  sources.Snapshot
}

// each opens the sources of packs in their current version, each source once, and
// calls do. It reports failures and continues with the other sources.
func (a *app) each(ctx context.Context, p *place, ids []string, do func(look) error) error {
	snaps := map[string]sources.Snapshot{}
	defer func() {
		for _, s := range snaps {
			_ = s.Close()
		}
	}()
	var failed []error
	for _, id := range ids {
		e := p.l.Packs[id]
		snap, ok := snaps[e.Source]
		var err error
		if !ok {
			if snap, _, err = p.open(ctx, e.Source); err == nil {
				snaps[e.Source] = snap
			}
		}
		now := ""
		if err == nil {
			now, err = sources.PinOf(ctx, snap, e.Path)
		}
		if err == nil {
			err = do(look{ID: id, Pin: e.Pin, Now: now, snap: snap})
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", safetext.Line(id), err))
		}
	}
	switch err := errors.Join(failed...); {
	case err == nil:
		return nil
	case len(ids) == 1:
		return refusal(failed[0])
	case isRefusal(err):
		return &cli.StatusError{Err: err, Status: cli.StatusRefused}
	default:
		return &cli.StatusError{Err: err, Status: statusPartly}
	}
}

func (a *app) outdatedCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "outdated [ID...]",
		Short: "Show which added packs have another version now",
		Long: `Show which added packs have another version where they came from. Where that one is older, the
line says so, and update would refuse it. Nothing changes. The exit status is 2 when there is
another version of a pack.`,
		Example:           "  packs-mcp outdated",
		ValidArgsFunction: a.completeIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.outdated(cmd.Context(), args, s) },
	}
	a.flags(cmd, &s, false)
	cli.JSONFlag[outdatedPacks](a.Env, cmd, &s.json)
	return cmd
}

func (a *app) outdated(ctx context.Context, named []string, s settings) error {
	p, ids, err := a.chosen(ctx, s, named)
	if err != nil {
		return err
	}
	others := []look{}
	asked := map[string]string{} // :: two pins of a repository → how the second is older
	err = a.each(ctx, p, ids, func(l look) (err error) {
		if l.Now == "" { // a folder: its bytes tell
			it, err := p.restage(ctx, l)
			if err != nil {
				return err
			}
			l.Now, l.Older = it.entry.Pin, it.olderThanHere()
			if err := it.close(); err != nil {
				return err
			}
		} else if l.Now != l.Pin {
			l.Older = p.older(ctx, l, asked)
		}
		if l.Now != l.Pin {
			others = append(others, l)
		}
		return nil
	})
	if s.json {
		err = errors.Join(cli.PrintJSON(a.Stdout, outdatedPacks{others}), err)
	} else {
		for _, l := range others {
			fmt.Fprintf(a.Stdout, "%s  %s → %s", safetext.Line(l.ID), short(l.Pin), short(l.Now))
			if l.Older != "" {
				fmt.Fprintf(a.Stdout, "  older: %s", safetext.Line(l.Older))
			}
			fmt.Fprintln(a.Stdout)
		}
	}
	if err == nil && len(others) > 0 {
		return &cli.StatusError{Err: cli.ErrSaid, Status: statusDiffers}
	}
	return err
}

// restage stages what a source has now of a pack that was added.
func (p *place) restage(ctx context.Context, l look) (*item, error) {
	e := p.l.Packs[l.ID]
	return p.stage(ctx, l.snap, e.Source, sources.Pack{Path: e.Path}, l.ID)
}

// older says how what a source has now is older than what was added. It returns "" if
// it is not, or if that cannot be found out: update refuses what cannot be checked.
func (p *place) older(ctx context.Context, l look, asked map[string]string) string {
	past, ok := l.snap.(sources.Past)
	if !ok {
		it, err := p.restage(ctx, l)
		if err != nil {
			return ""
		}
		defer it.close()
		return it.olderThanHere()
	}
	both := l.Pin + " " + l.Now
	if _, ok := asked[both]; !ok {
		asked[both] = ""
		if is, err := past.Precedes(ctx, l.Pin); err == nil && is {
			asked[both] = "the commit here follows it"
		}
	}
	return asked[both]
}

// olderThanHere says how a pack is older than the version that it would replace; "" if
// it is not.
func (it *item) olderThanHere() string {
	r := trust.Older(it.before, it.entry)
	if r == nil {
		return ""
	}
	return r.New + ", here " + r.Old
}

// short cuts a pin to a length that distinguishes two of them.
func short(pin string) string {
	kind, digits, _ := strings.Cut(pin, ":")
	return kind + ":" + digits[:min(12, len(digits))]
}

func (a *app) diffCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "diff ID",
		Short: "Show what an update of an added pack would change",
		Long: `Show what an update would change: the files, what the tools would run and may do, and the lasting
answers that would end. Nothing changes. The exit status is 2 when something differs.`,
		Example:           "  packs-mcp diff anthropics/pdf",
		Args:              cli.Needs(1, 1, "a pack's id"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.update(cmd.Context(), args, updateSettings{settings: s, preview: true})
		},
	}
	a.flags(cmd, &s, false)
	cli.JSONFlag[changedPacks](a.Env, cmd, &s.json)
	return cmd
}

// updateSettings are the flags of update.
type updateSettings struct {
	settings
	preview, undo, signer, source, older bool
	accept                               []string
}

func (a *app) updateCommand() *cobra.Command {
	var s updateSettings
	cmd := &cobra.Command{
		Use:   "update [ID...]",
		Short: "Update added packs, after showing what would change",
		Long: `Update added packs. What would change is shown first: the files, what the tools would run and may
do, and the lasting answers that end, since an answer holds for the bytes that it was given for.
With --undo, the version before comes back.`,
		Example: `  packs-mcp update
  packs-mcp update --preview
  packs-mcp update --undo anthropics/pdf`,
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.undo {
				return a.undo(cmd.Context(), args, s.settings)
			}
			return a.update(cmd.Context(), args, s)
		},
	}
	a.flags(cmd, &s.settings, true)
	cli.JSONFlag[changedPacks](a.Env, cmd, &s.json)
	f := cmd.Flags()
	f.BoolVar(&s.preview, "preview", false, "show what would change, and change nothing; the exit status is 2 if something would")
	f.BoolVar(&s.undo, "undo", false, "give the version before its place back")
	f.StringArrayVar(&s.accept, "accept", nil, "the `HASH` of a finding of the scan that you accept (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("accept", cobra.NoFileCompletions)
	f.BoolVar(&s.signer, "allow-signer-change", false, "also take what another one signed, or nobody")
	f.BoolVar(&s.older, "allow-older", false, "also take what is older than what is here, or no longer says that it is not")
	f.BoolVar(&s.source, "allow-source-change", false, "also take what a tag names that named something else before")
	return cmd
}

func (a *app) update(ctx context.Context, named []string, s updateSettings) error {
	p, ids, err := a.chosen(ctx, s.settings, named)
	if err != nil {
		return err
	}
	var items []*item
	defer func() {
		for _, it := range items {
			_ = it.close()
		}
	}()
	failed := a.each(ctx, p, ids, func(l look) error {
		if l.Now == l.Pin {
			return nil
		}
		e := p.l.Packs[l.ID]
		past, ordered := l.snap.(sources.Past)
		if ordered = ordered && !s.source; ordered {
			if err := unrelated(ctx, past, l); err != nil {
				return err
			}
		}
		it, err := p.stage(ctx, l.snap, e.Source, sources.Pack{Path: e.Path}, l.ID)
		if err != nil {
			return err
		}
		if err := trust.Check(it.before, it.entry.Signature); err != nil && !s.signer {
			return errors.Join(err, it.close())
		}
		if err := it.age(ordered, s.older); err != nil {
			return errors.Join(err, it.close())
		}
		items = append(items, it)
		it.entry.Explicit, it.entry.Requires = e.Explicit, e.Requires
		return nil
	})
	if s.preview {
		return errors.Join(a.preview(items, s.json), failed)
	}
	return errors.Join(a.carryOut(ctx, p, items, how{settings: s.settings, unsigned: s.signer, accept: s.accept, verb: "Update"}), failed)
}

// unrelated refuses a version that does not descend from the one that was added: a
// moved tag, or a branch whose history was rewritten.
func unrelated(ctx context.Context, past sources.Past, l look) error {
	reason := "the tag names something other than before"
	if !past.Fixed() {
		follows, err := past.Follows(ctx, l.Pin)
		if err != nil || follows {
			return err
		}
		reason = "its history was rewritten: the version that was added is not in it"
	}
	return &trust.Refusal{Reason: reason + "; update --allow-source-change takes it", Old: l.Pin, New: l.Now}
}

// preview shows what would change.
func (a *app) preview(items []*item, asJSON bool) error {
	differ := []result{}
	for _, it := range items {
		if it.before.Digest == it.entry.Digest {
			continue
		}
		it.accept(nil)
		if !asJSON {
			a.show(it, true)
		}
		differ = append(differ, result{ID: it.id, Source: it.entry.Source, Resolved: it.entry.Resolved, Digest: it.entry.Digest, Before: it.before.Digest, Change: it.change, Ends: it.ends, Findings: orEmpty(it.found)})
	}
	var err error
	if asJSON {
		err = cli.PrintJSON(a.Stdout, changedPacks{differ})
	}
	if err == nil && len(differ) > 0 {
		return &cli.StatusError{Err: cli.ErrSaid, Status: statusDiffers}
	}
	return err
}

// undo restores the previous versions.
func (a *app) undo(ctx context.Context, named []string, s settings) error {
	p, err := a.place(ctx, s)
	if err != nil {
		return err
	}
	if len(named) == 0 {
		return &cli.UsageError{Err: errors.New("update --undo needs a pack's id"), Hint: "see: packs-mcp update --help"}
	}
	ids, err := p.ids(named)
	if err != nil {
		return err
	}
	if !s.yes {
		if !cli.IsTerminal(a.Stdin) {
			return cli.WithHint(&cli.StatusError{Err: errors.New("nothing was changed: there is no terminal to ask on"), Status: cli.StatusRefused}, "add --yes to do it")
		}
		if yes, err := a.ask(ctx, fmt.Sprintf("Restore the version of %s from before?", safetext.Line(strings.Join(ids, ", ")))); !yes {
			return err
		}
	}
	return p.Change(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			e, err := tx.Undo(id)
			if errors.Is(err, store.ErrNoBefore) {
				return fmt.Errorf("%s: %w", safetext.Line(id), err)
			}
			if err != nil {
				return err
			}
			if err := a.recordChange(p, id, e); err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "%s is back at %s\n", safetext.Line(id), short(e.Pin))
		}
		return nil
	})
}

func (a *app) recordChange(p *place, id string, e lock.Entry) error {
	dir, err := p.Path(id)
	if err != nil {
		return err
	}
	return a.record(p.cfg, audit.Entry{Event: audit.EventSource, Pack: id, Dir: dir, Channel: "command", PackDigest: e.Digest, Reason: "from " + e.Resolved})
}
