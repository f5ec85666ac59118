package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// What became of a client.
const (
	stateReady   = "ready"   // it had the entry already
	stateWould   = "would"   // --dry-run
	stateWritten = "written" // and the server started
	statePaste   = "paste"   // a person has to write it
	stateFailed  = "failed"
)

// An outcome is what became of one client, for --json.
type outcome struct {
	Client string   `json:"client"`
	State  string   `json:"state"`
	Files  []string `json:"files,omitempty"` // that changed, or would
	Tools  int      `json:"tools,omitempty"` // that the server offered when it was started
	Entry  string   `json:"entry,omitempty"` // to paste
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
	server, err := a.server(cfg, s)
	if err != nil {
		return err
	}
	chosen, err := choose(ids, place)
	if err != nil {
		return err
	}
	var plans []plan
	for _, c := range chosen {
		plans = append(plans, a.plan(c, place, server, s))
	}
	var results []outcome
	if s.json {
		results = a.carryOut(ctx, cfg, plans, s, func(string, ...any) {})
		if err := cli.PrintJSON(a.Stdout, connected{results}); err != nil {
			return err
		}
	} else {
		a.show(plans)
		if !s.dryRun && !s.yes && changes(plans) {
			if yes, err := a.ask(); !yes {
				return err
			}
		}
		results = a.carryOut(ctx, cfg, plans, s, func(format string, args ...any) { fmt.Fprintf(a.Stdout, format, args...) })
	}
	for _, r := range results {
		if r.State == stateFailed {
			return cli.ErrSaid
		}
	}
	return nil
}

// choose returns the clients that are named, or else found.
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
		return nil, cli.WithHint(errors.New("none of the clients that packs-mcp knows was found here"), "name one: packs-mcp setup claude-code; see: packs-mcp setup --help")
	}
	return chosen, nil
}

func changes(plans []plan) bool {
	for _, p := range plans {
		if len(p.files) > 0 {
			return true
		}
	}
	return false
}

// show prints what would change.
func (a *app) show(plans []plan) {
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		fmt.Fprintf(a.Stdout, "%s\n", p.client.Name)
		switch {
		case p.why != "":
			fmt.Fprintf(a.Stdout, "  %s\n", safetext.Line(p.why))
			if p.paste != "" {
				if p.failed {
					fmt.Fprintf(a.Stdout, "  the entry to paste:\n")
				}
				fmt.Fprintf(a.Stdout, "\n%s", safetext.Text(p.paste))
			}
		case len(p.files) == 0:
			fmt.Fprintf(a.Stdout, "  it is set up already, in %s\n", safetext.Line(p.entry.File))
		}
		for _, e := range p.files {
			for _, line := range diffLines(e) {
				fmt.Fprintf(a.Stdout, "  %s\n", line)
			}
		}
		for _, note := range p.notes {
			fmt.Fprintf(a.Stdout, "  (%s; --minimal leaves it out)\n", note)
		}
	}
}

// diffLines shows what would change in a file.
func diffLines(e edit) (lines []string) {
	old := e.Path
	if !e.Exists {
		old = "(new)"
	}
	text := diff.Diff(safetext.Line(old), e.Text, safetext.Line(e.Path), e.after)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "diff ") {
			lines = append(lines, safetext.Text(strings.TrimRight(line, "\r\n")))
		}
	}
	return lines
}

// ask asks the person whether to write.
func (a *app) ask() (yes bool, err error) {
	if !cli.IsTerminal(a.Stdin) {
		return false, cli.WithHint(errors.New("nothing was written: there is no terminal to ask on"), "add --yes to write it")
	}
	fmt.Fprint(a.Stderr, "\nWrite this? [y/N] ")
	line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	fmt.Fprintln(a.Stderr, "Nothing was written.")
	return false, nil
}

// carryOut does what was shown, and tells it.
func (a *app) carryOut(ctx context.Context, cfg *config.Config, plans []plan, s settings, tell func(string, ...any)) []outcome {
	results := make([]outcome, 0, len(plans))
	for _, p := range plans {
		r := outcome{Client: p.client.ID, State: stateReady}
		for _, e := range p.files {
			r.Files = append(r.Files, e.Path)
		}
		switch {
		case p.failed:
			r.State, r.Error, r.Entry = stateFailed, p.why, p.paste
		case p.paste != "":
			r.State, r.Entry = statePaste, p.paste
		case s.dryRun && len(p.files) > 0:
			r.State = stateWould
		case !s.dryRun:
			a.carryOutOne(ctx, cfg, p, &r, tell)
		}
		results = append(results, r)
	}
	return results
}

func (a *app) carryOutOne(ctx context.Context, cfg *config.Config, p plan, r *outcome, tell func(string, ...any)) {
	fail := func(err error, hint string) {
		r.State, r.Error = stateFailed, err.Error()
		tell("\n%s: %s\n  hint: %s\n", p.client.Name, safetext.Text(err.Error()), hint)
	}
	for _, e := range p.files {
		if err := write(cfg, p.client, p.entry, e); err != nil {
			fail(err, "what was written before it stays; see: packs-mcp setup --undo "+p.client.ID)
			return
		}
	}
	tools, err := a.verify(ctx, p.client, p.entry)
	if err != nil {
		fail(fmt.Errorf("the server does not start as the entry says: %w", err), "see: packs-mcp doctor; take it back: packs-mcp setup --undo "+p.client.ID)
		return
	}
	if r.Tools = tools; len(p.files) > 0 {
		r.State = stateWritten
	}
	tell("\n%s is set up: the server started and offers %s. Restart %s if it runs.\n", p.client.Name, cli.Counted(tools, "tool", "tools"), p.client.Name)
}
