package prompt

import (
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// mark adds a mark.
func (b *builder) mark(w Weight, role Role, text string) {
	b.Marks = append(b.Marks, Mark{Role: role, Text: text, Weight: w})
}

// marks adds what matters about a call, most important first.
func (b *builder) marks(r *call.Request, ask Ask) {
	if r.Pack.Dir != "" && !r.Pack.Trusted() {
		b.mark(Danger, RoleTrust, "not trusted")
	}
	if r.Pack.From.Differs {
		b.mark(Danger, RoleTrust, "not what was added")
	}
	if len(ask.Changed) > 0 {
		b.mark(Danger, RoleChange, "changed "+ask.Since)
	}
	if r.Hidden != "" {
		b.mark(Danger, RoleHidden, "hidden text")
	}
	if s := ask.Scan; s.weight() == Danger {
		b.mark(Danger, RoleScan, "scan: "+line(s.Worst))
	}
	if r.Run == nil {
		if r.Kind == call.KindOpen || r.Kind == call.KindRead {
			b.mark(Plain, RoleEffect, "reads only")
		}
		b.mark(Plain, RoleEffect, "starts nothing")
		return
	}
	b.runMarks(r, ask.Box)
	slices.SortStableFunc(b.Marks, func(a, b Mark) int { return rank(a.Weight) - rank(b.Weight) })
}

// rank returns the order of a weight.
func rank(w Weight) int { return slices.Index([]Weight{Danger, Notice, Plain}, w) }

// runMarks adds what matters about a run.
func (b *builder) runMarks(r *call.Request, box sandbox.Report) {
	run := r.Run
	if box.Level == sandbox.LevelNone {
		b.mark(Danger, RoleSandbox, "no sandbox")
	} else {
		if box.Level == sandbox.LevelPartial {
			b.mark(Notice, RoleSandbox, "partly confined")
		}
		b.writeMark(r)
		b.networkMark(&run.Policy, box.NetworkEnforced)
	}
	if len(r.Fields) > 0 {
		b.mark(Notice, RoleField, "needs "+plural(len(r.Fields), "value")+" from you")
	}
	if names := run.Granted.Env; len(names) > 0 {
		b.mark(Notice, RoleVariable, "gets "+few(names, "variable")+" of yours")
	}
	if len(run.Env) > 0 {
		b.mark(Notice, RoleVariable, "sets "+few(call.EnvNames(run.Env), "variable"))
	}
}

func (b *builder) networkMark(p *sandbox.Policy, enforced bool) {
	n, text := p.Network, "no network"
	switch {
	case n == sandbox.NetworkFull:
		text = "whole network"
	case !enforced:
		text = "network not blocked"
	case n == sandbox.NetworkLoopback:
		text = "a network of its own"
	case n == sandbox.NetworkHosts:
		// To name one of several would leave the choice to the pack's author.
		if text = "can send data to " + p.Hosts[0].String(); len(p.Hosts) > 1 {
			text = "can send data to " + plural(len(p.Hosts), "host")
		}
	}
	b.mark(networkWeight(n, enforced), RoleNetwork, text)
}

// writeMark adds which of the user's folders a run may change.
func (b *builder) writeMark(r *call.Request) {
	p := r.Run.Policy
	var places []string // in words
	var others []string // folders that have no usual word
	own := false        // it may change a folder that was made for the chat
	add := func(folder string) {
		switch why := reason(r, folder); why {
		case " (the workspace)":
			places = append(places, "the workspace")
		case " (the project)", " (in the project)", " (the project's git folder)":
			places = append(places, "the project")
		default:
			others = append(others, folder)
		}
	}
	for _, folder := range p.Writable {
		if folder == r.Workspace {
			own = true
			continue
		}
		add(folder)
	}
	for _, l := range p.Layers {
		if l.Kind != sandbox.LayerReadOnly {
			add(l.Folder)
		}
	}
	slices.Sort(places)
	places = slices.Compact(places)
	if len(others) > 0 && len(places) == 0 {
		places = []string{few(others, "folder")}
	} else if len(others) > 0 {
		places = append(places, plural(len(others), "folder"))
	}
	switch {
	case len(places) > 0:
		b.mark(Notice, RoleWrites, "changes "+strings.Join(places, " and "))
	case own:
		b.mark(Plain, RoleWrites, "changes only its workspace")
	default:
		b.mark(Plain, RoleWrites, "reads only")
	}
}

// few names the one thing if its name is short, and otherwise counts them.
func few(names []string, thing string) string {
	const shortest = 24
	if len(names) == 1 && isPlain(names[0]) && len(names[0]) <= shortest {
		return names[0]
	}
	return plural(len(names), thing)
}
