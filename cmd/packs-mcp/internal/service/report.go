package service

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
)

// A reporter logs what is wrong with the packs: each problem once, and again
// only if it was fixed meanwhile. It must be used by one goroutine at a time.
type reporter struct {
	logger *slog.Logger
	attach []string // the ids in --attach
	// withoutTool says which attached packs get no tool of their own; nil if nobody
	// expects one.
	withoutTool func(*packs.Catalog) (message, hint string)
	said        map[trouble]bool
}

// trouble is one problem.
type trouble struct{ about, what, hint string }

// report logs what is wrong now and was not before.
func (r *reporter) report(c *packs.Catalog) {
	now := make(map[trouble]bool)
	for _, d := range c.Problems() {
		now[trouble{what: d.String(), hint: d.Hint}] = true
	}
	all := c.All()
	for _, p := range all {
		if p.Attached && !p.Valid && !p.IsUnread() && p.ShadowedBy == "" {
			d := firstError(p.Problems)
			now[trouble{p.ID, "the pack is attached and not valid: " + d.String(), d.Hint}] = true
		}
	}
	for _, id := range r.attach {
		if t, ok := notAttached(id, all); ok {
			now[t] = true
		}
	}
	if r.withoutTool != nil {
		if message, hint := r.withoutTool(c); message != "" {
			now[trouble{what: message, hint: hint}] = true
		}
	}
	// Sort, so that the order is the same on every server.
	fresh := slices.DeleteFunc(slices.Collect(maps.Keys(now)), func(t trouble) bool { return r.said[t] })
	slices.SortFunc(fresh, func(a, b trouble) int {
		return strings.Compare(a.about+"\x00"+a.what, b.about+"\x00"+b.what)
	})
	for _, t := range fresh {
		var args []any
		if t.about != "" {
			args = append(args, "pack", t.about)
		}
		if t.hint != "" {
			args = append(args, "hint", t.hint)
		}
		r.logger.Warn(t.what, args...)
	}
	r.said = now
}

// notAttached says why a pack that --attach names is not attached; ok is false
// if it is attached. An invalid pack is reported as such elsewhere.
func notAttached(id string, all []*packs.Pack) (t trouble, ok bool) {
	if id == "all" || slices.ContainsFunc(all, func(p *packs.Pack) bool { return p.Attached && strings.EqualFold(p.ID, id) }) {
		return trouble{}, false
	}
	var ids []string
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	hint := "packs-mcp list --all shows all ids"
	if meant := near.Names(id, ids, 3); len(meant) > 0 {
		hint = "near to it are " + strings.Join(meant, ", ")
	}
	return trouble{id, "--attach names an unknown pack", hint}, true
}

func firstError(problems []diag.Diagnostic) diag.Diagnostic {
	for _, d := range problems {
		if d.Severity == diag.Error {
			return d
		}
	}
	return diag.Diagnostic{}
}
