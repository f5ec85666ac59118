package prompt

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// run writes what would be started, where, and under which rules.
func (p *text) run(req *call.Request, box sandbox.Report) {
	r := req.Run
	p.program(r.Command.Program)
	for i, a := range r.Command.Args {
		// Numbered, so that none can pass for part of another.
		p.fact(first(i, "arguments"), fmt.Sprintf("%d: %s", i+1, quoted(a)))
	}
	if len(r.Command.Args) == 0 {
		p.fact("arguments", "none")
	}
	if len(r.Command.Stdin) > 0 {
		p.fact("input", input(r.Command.Stdin))
	}
	p.fact("folder", safetext.Quote(r.Command.Dir))
	p.variables(r)
	if box.Level == sandbox.LevelNone {
		p.fact("sandbox", "none: it can do everything you can do,")
		p.fact("", "with your files and on the network")
		if r.Policy.Network != sandbox.NetworkNone {
			p.fact("pack asks", "for the network")
		}
		p.unenforcedLayers(req)
	} else {
		p.fact("sandbox", levelWords(box.Level))
		for _, gap := range gaps(box) {
			p.fact("", "not covered: "+safetext.Line(gap))
		}
		p.folders(req)
		p.fact("network", networkWords(r.Policy.Network, box.NetworkEnforced))
	}
	p.granted(r.Granted, box.Level)
	limits := r.Policy.Limits.WithDefaults()
	if r.Cache != "" {
		p.fact("keeps", safetext.Quote(r.Cache))
		p.fact("", fmt.Sprintf("a cache between its runs, up to %s", size(limits.Cache)))
	}
	if box.Level != sandbox.LevelNone {
		p.fact("limits", fmt.Sprintf("%d processes, %s of memory each", limits.Processes, size(limits.Memory)))
	}
	p.fact("stops", fmt.Sprintf("after %s at the latest", duration(limits.Timeout)))
	if r.OnceOnly != "" {
		p.fact("only once", safetext.Line(r.OnceOnly))
	}
	if r.ReadOnly {
		p.fact("pack says", "it changes nothing")
	}
}

// unenforcedLayers writes which folders a run is given a copy of, where nothing
// keeps it from the folders themselves.
func (p *text) unenforcedLayers(req *call.Request) {
	n := 0
	for _, l := range req.Run.Policy.Layers {
		p.fact(first(n, "works on"), safetext.Quote(l.Folder)+reason(req, l.Folder))
		if l.Kind == sandbox.LayerReadOnly {
			p.fact("", "should only read it, and nothing makes it")
		} else {
			p.fact("", layerWords(l, &req.Run.Policy))
			p.fact("", "nothing keeps it from changing the folder itself")
		}
		n++
	}
}

// program writes which file is started, and how it was come by.
func (p *text) program(program program.Program) {
	p.fact("program", safetext.Quote(program.Path))
	if program.Resolved != "" && program.Resolved != program.Path {
		p.fact("", "which is "+safetext.Quote(program.Resolved))
	}
	finds := ""
	for _, i := range program.Interpreters {
		if i.IsEnv {
			finds = i.Path // the next program is shown together with it
			continue
		}
		value := "run by " + safetext.Quote(i.Path)
		if finds != "" {
			value += ", started by " + safetext.Quote(finds)
			finds = ""
		}
		p.fact("", value)
		// Where links of the system's own lead is the system's own business.
		if i.Resolved != i.Path && !(paths.IsSystem(i.Path) && paths.IsSystem(i.Resolved)) {
			p.fact("", "which is "+safetext.Quote(i.Resolved))
		}
		for _, a := range i.Args {
			p.fact("", "given "+quoted(a))
		}
		for _, kv := range i.Env {
			p.fact("", "with the variable "+quoted(kv))
		}
	}
	if program.Shim != "" {
		p.fact("", "chosen by the shim "+safetext.Quote(program.Shim))
	}
}

// variables writes what the tool sets and, by their names alone, what the user
// grants. What the tool sets is in quotes, so that it cannot pass for a grant.
func (p *text) variables(r *call.Run) {
	const label = "variables"
	n := 0
	for _, kv := range r.Env {
		p.fact(first(n, label), quoted(kv))
		n++
	}
	for _, v := range r.Granted.Env {
		p.fact(first(n, label), Name(v)+" (yours, by your configuration)")
		n++
	}
	for _, v := range r.Granted.Unset {
		p.fact(first(n, label), Name(v)+" (granted by you, but not set)")
		n++
	}
}

// folders writes what the run can read and change, and why.
func (p *text) folders(req *call.Request) {
	policy := req.Run.Policy
	const read = "may read"
	p.fact(read, "the system's programs and settings")
	for _, path := range policy.ReadOnly {
		p.fact("", safetext.Quote(path)+reason(req, path))
	}
	for _, path := range req.Run.Command.Program.Needs {
		p.fact("", safetext.Quote(path)+" (the program's installation)")
	}
	p.readOnlyLayers(req)
	n := 0
	for _, path := range policy.Writable {
		p.fact(first(n, "may change"), safetext.Quote(path)+reason(req, path))
		n++
	}
	for _, l := range policy.Layers {
		if l.Kind != sandbox.LayerReadOnly {
			p.fact(first(n, "may change"), safetext.Quote(l.Folder)+reason(req, l.Folder))
			p.fact("", layerWords(l, &policy))
			n++
		}
	}
}

// readOnlyLayers writes which folders the run would change if it could.
func (p *text) readOnlyLayers(req *call.Request) {
	for _, l := range req.Run.Policy.Layers {
		if l.Kind == sandbox.LayerReadOnly {
			p.fact("", safetext.Quote(l.Folder)+reason(req, l.Folder))
			p.fact("", "read-only for this run: "+safetext.Line(l.Reason))
		}
	}
}

// layerWords says what becomes of what a run changes in a layer.
func layerWords(l sandbox.Layer, policy *sandbox.Policy) string {
	words := "applied when it ends; protected names wait for you"
	switch {
	case l.IsGit() && policy.GitWrite && !policy.Review:
		words = "commits are applied when it ends; everything else waits for you"
	case policy.Review || l.IsGit():
		words = "held when it ends; every change waits for you"
	case policy.GitWrite && l.Commits:
		words = "applied when it ends, commits too; protected names wait for you"
	}
	if l.Kind != sandbox.LayerOverlay {
		words = "in a copy, " + words
	}
	return words
}

// below is path relative to the first of dirs that it is in.
func below(dirs []string, path string) string {
	for _, dir := range dirs {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return path
}

// reason says, in brackets, why a run may read or change path.
func reason(r *call.Request, path string) string {
	switch {
	case slices.Contains(r.Run.Granted.Folders, path):
		for _, l := range r.Run.Policy.Links {
			if l.Target == path {
				// What was granted is a link, and may lead elsewhere by now.
				return " (by your configuration, where " + safetext.Quote(l.Path) + " leads)"
			}
		}
		return " (by your configuration)"
	case path == r.Pack.Dir:
		return " (the pack)"
	case path == r.Run.Command.Workspace:
		return " (the workspace)"
	case slices.ContainsFunc(r.Run.Policy.Layers, func(l sandbox.Layer) bool { return l.Folder == path && l.IsGit() }):
		return " (the project's git folder)"
	case r.Run.Project != "" && path == r.Run.Project:
		return " (the project)"
	case r.Run.Project != "" && below([]string{r.Run.Project}, path) != path:
		return " (in the project)"
	}
	return ""
}

// granted writes what else the user's configuration opens, and what it was
// meant to open.
func (p *text) granted(g call.Granted, level sandbox.Level) {
	only := ", with what is named here"
	if level == sandbox.LevelNone {
		only = ""
	}
	if g.Home != "" {
		p.fact("home", safetext.Quote(g.Home)+only)
	}
	for i, m := range g.LeftOut {
		p.fact(first(i, "left out"), safetext.Quote(m.What)+": "+safetext.Line(m.Why))
	}
}

// gaps are what the level in use does not cover here.
func gaps(box sandbox.Report) []string {
	for _, t := range box.Trials {
		if t.Level == box.Level && t.Problem == "" {
			return t.Gaps
		}
	}
	return nil
}

func levelWords(l sandbox.Level) string {
	switch l {
	case sandbox.LevelFull:
		return "full: it reaches only what is named here"
	case sandbox.LevelPartial:
		return "partial: most of this is enforced"
	default:
		return l.String()
	}
}

func networkWords(n sandbox.Network, enforced bool) string {
	switch {
	case n == sandbox.NetworkFull:
		return "full: it can send data anywhere"
	case !enforced:
		return "NOT kept from it: it can send data anywhere"
	case n == sandbox.NetworkLoopback:
		return "loopback: only its own processes"
	default:
		return n.String()
	}
}
