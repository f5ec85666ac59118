package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// The outcomes for a client.
const (
	stateReady   = "ready"   // it already had the entry
	stateWould   = "would"   // --dry-run
	stateWritten = "written" // and the server started
	statePaste   = "paste"   // the person has to write it
	stateFailed  = "failed"
)

// An outcome is the result for one client, for --json.
type outcome struct {
	Client string   `json:"client"`
	State  string   `json:"state"`
	Files  []string `json:"files,omitempty"` // files that changed, or would change
	Left   []string `json:"left,omitempty"`  // permissions that --allow would write
	Tools  int      `json:"tools,omitempty"` // how many tools the server offered when it was started
	Entry  string   `json:"entry,omitempty"` // to paste
	Note   string   `json:"note,omitempty"`  // what to know about the entry
	Error  string   `json:"error,omitempty"`
}

// connected is what --json prints.
type connected struct {
	Clients []outcome `json:"clients"`
}

func (a *app) setup(ctx context.Context, ids []string, s settings) error {
	if err := s.check(); err != nil {
		return err
	}
	cfg, _, err := a.Load()
	if err != nil {
		return err
	}
	if asRoot(a.Environ) {
		return cli.WithHint(errors.New("this is root, under sudo: the settings would be root's"), "run it without sudo")
	}
	if s.undo {
		return a.undo(cfg, ids)
	}
	place := a.place(cfg)
	server, err := a.server(cfg, place, s)
	if err != nil {
		return err
	}
	chosen, err := choose(ids, place)
	if err != nil {
		return err
	}
	var plans []plan
	for _, c := range chosen {
		plans = append(plans, a.plan(ctx, c, place, server, s))
	}
	var results []outcome
	if s.json {
		results = a.carryOut(ctx, cfg, plans, server, s, func(string, ...any) {})
		if err := cli.PrintJSON(a.Stdout, connected{results}); err != nil {
			return err
		}
	} else {
		show(a.Screen(a.Stdout), plans, s)
		if !s.dryRun && !s.yes {
			if yes, err := a.ask(ctx, plans); !yes {
				return err
			}
		}
		results = a.carryOut(ctx, cfg, plans, server, s, func(format string, args ...any) { fmt.Fprintf(a.Stdout, format, args...) })
	}
	for _, r := range results {
		if r.State == stateFailed {
			return cli.ErrSaid
		}
	}
	return nil
}

// choose returns the clients that are named, or else those that are found.
func choose(ids []string, p *clients.Place) (chosen []clients.Client, err error) {
	for _, id := range ids {
		c, _ := clients.ByID(id)
		chosen = append(chosen, c)
	}
	if len(ids) > 0 {
		return chosen, nil
	}
	for _, c := range clients.All() {
		if found(c, p) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, cli.WithHint(errors.New("no MCP client was found here"), "name one: packs-mcp setup claude-code; see: packs-mcp setup --help")
	}
	return chosen, nil
}

// ask asks the person whether to write, and about each offer. It adds accepted offers
// to the edits of their plan, and drops the others.
func (a *app) ask(ctx context.Context, plans []plan) (write bool, err error) {
	sure := func(question string) (bool, error) {
		if !cli.IsTerminal(a.Stdin) {
			return false, cli.WithHint(errors.New("nothing was written: there is no terminal to ask on"), "add --yes to write it")
		}
		return a.Confirm(ctx, question)
	}
	if slices.ContainsFunc(plans, func(p plan) bool { return len(p.edits) > 0 }) {
		if yes, err := sure("Write this?"); !yes {
			if err == nil {
				fmt.Fprintln(a.Stderr, "Nothing was written.")
			}
			return false, err
		}
	}
	for i := range plans {
		for _, e := range plans[i].offers {
			if cli.IsTerminal(a.Stdin) {
				fmt.Fprintf(a.Stderr, "\n%s\n", plans[i].client.Name)
				showEdit(a.Screen(a.Stderr), e)
			}
			yes, err := sure(e.change.Ask)
			if err != nil {
				return false, err
			}
			if yes {
				plans[i].edits = append(plans[i].edits, e)
			}
		}
	}
	return true, nil
}

// carryOut does what was shown, and reports the results.
func (a *app) carryOut(ctx context.Context, cfg *config.Config, plans []plan, server clients.Server, s settings, tell func(string, ...any)) []outcome {
	results := make([]outcome, 0, len(plans))
	for _, p := range plans {
		r := outcome{Client: p.client.ID, State: stateReady, Note: p.note}
		for _, e := range p.edits {
			r.Files = append(r.Files, e.Path)
		}
		for _, e := range p.offers {
			if !slices.Contains(r.Files, e.Path) {
				r.Left = append(r.Left, e.change.Word)
			}
		}
		switch {
		case p.failed:
			r.State, r.Error, r.Entry = stateFailed, p.why, p.paste
		case p.paste != "":
			r.State, r.Entry = statePaste, p.paste
		case s.dryRun && len(p.edits) > 0:
			r.State = stateWould
		case !s.dryRun:
			a.carryOutOne(ctx, cfg, p, server, &r, tell)
		}
		results = append(results, r)
	}
	return results
}

func (a *app) carryOutOne(ctx context.Context, cfg *config.Config, p plan, server clients.Server, r *outcome, tell func(string, ...any)) {
	fail := func(err error, hint string) {
		r.State, r.Error = stateFailed, err.Error()
		tell("\n%s: %s\n  hint: %s\n", p.client.Name, safetext.Text(err.Error()), hint)
	}
	for _, e := range p.edits {
		if err := write(cfg, p.client, e); err != nil {
			fail(err, "what was written before it stays; see: packs-mcp setup --undo "+p.client.ID)
			return
		}
	}
	tools, err := a.verify(ctx, p.client, server)
	if err != nil {
		fail(fmt.Errorf("the server does not start: %w", err), "see: packs-mcp doctor; take it back: packs-mcp setup --undo "+p.client.ID)
		return
	}
	if r.Tools = tools; len(p.edits) > 0 {
		r.State = stateWritten
	}
	tell("\n%s is set up: the server started and offers %s. Restart %s if it runs.\n", p.client.Name, cli.Counted(tools, "tool", "tools"), p.client.Name)
	if p.kept {
		tell("  The entry keeps arguments that it had, which were not tried. Check them with: packs-mcp doctor\n")
	}
}
