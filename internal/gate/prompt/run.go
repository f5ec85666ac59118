package prompt

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// access adds what the run may read, change and reach, and why.
func (b *builder) access(req *call.Request, box sandbox.Report) {
	b.section = SectionAccess
	r := req.Run
	if box.Level == sandbox.LevelNone {
		b.weighty(Danger, RoleSandbox, "sandbox", "none; it can do everything you can do, with your files and on the network")
		if r.Policy.Network != sandbox.NetworkNone {
			b.fact(RoleNetwork, "pack asks", "for the network")
		}
		b.unenforcedLayers(req)
	} else {
		b.confined(req, box)
	}
	b.granted(r.Granted, box.Level)
	limits := r.Policy.Limits.WithDefaults()
	if r.Cache != "" {
		b.fact(RoleCache, "keeps", fmt.Sprintf("%s, a cache between its runs, up to %s", quoted(r.Cache), size(limits.Cache)))
	}
	if box.Level != sandbox.LevelNone {
		b.fact(RoleLimits, "limits", fmt.Sprintf("%d processes, %s of memory each", limits.Processes, size(limits.Memory)))
		b.together(r.Policy.Together, box)
	}
	b.fact(RoleTimeout, "stops", fmt.Sprintf("after %s at the latest", duration(limits.Timeout)))
}

// together adds the bounds on all processes of a run together, or that they do not hold here.
func (b *builder) together(t sandbox.Together, box sandbox.Report) {
	var all []string
	if t.Memory > 0 {
		all = append(all, size(t.Memory)+" of memory")
	}
	if t.Processors > 0 {
		all = append(all, plural(t.Processors, "processor"))
	}
	switch text := strings.Join(all, ", "); {
	case text == "":
	case box.Together != "":
		b.weighty(Notice, RoleLimits, "in all", "not limited to "+text+" here: "+line(box.Together))
	default:
		b.fact(RoleLimits, "in all", text)
	}
}

// confined adds what a run under a sandbox may do.
func (b *builder) confined(req *call.Request, box sandbox.Report) {
	if box.Level == sandbox.LevelPartial {
		b.weighty(Notice, RoleSandbox, "sandbox", levelWords(box.Level))
	} else {
		b.fact(RoleSandbox, "sandbox", levelWords(box.Level))
	}
	b.place(req.Run.Place)
	for _, gap := range gaps(box) {
		b.weighty(Notice, RoleGap, "not covered", line(gap))
	}
	policy := req.Run.Policy
	const read, change = "may read", "may change"
	if req.Run.Place.Local() {
		b.fact(RoleReads, read, "the system's programs and settings")
	} else {
		b.fact(RoleReads, read, "everything in the image")
	}
	for _, path := range policy.ReadOnly {
		b.fact(RoleReads, read, quoted(path)+reason(req, path))
	}
	for _, path := range req.Run.Command.Program.Needs {
		b.fact(RoleReads, read, quoted(path)+" (the program's installation)")
	}
	for _, l := range policy.Layers {
		if l.Kind == sandbox.LayerReadOnly {
			b.fact(RoleReads, read, fmt.Sprintf("%s%s, read-only for this run: %s", quoted(l.Folder), reason(req, l.Folder), line(l.Reason)))
		}
	}
	for _, path := range policy.Writable {
		w := Notice
		if path == req.Workspace { // it was made for the chat
			w = Plain
		}
		b.weighty(w, RoleWrites, change, quoted(path)+reason(req, path))
	}
	for _, l := range policy.Layers {
		if l.Kind != sandbox.LayerReadOnly {
			b.weighty(Notice, RoleWrites, change, fmt.Sprintf("%s%s, %s", quoted(l.Folder), reason(req, l.Folder), layerWords(l, &policy)))
		}
	}
	b.weighty(networkWeight(policy.Network, box.NetworkEnforced), RoleNetwork, "network", networkWords(policy.Network, box.NetworkEnforced))
	for _, h := range policy.Hosts {
		b.weighty(Notice, RoleNetwork, "may send to", h.String())
	}
}

// place adds where the program runs, if not on this machine's own system.
func (b *builder) place(p sandbox.Place) {
	if p.Local() {
		return
	}
	runtime := ""
	if p.Runtime != "" {
		runtime = ", runtime " + quoted(p.Runtime)
	}
	b.fact(RoleSandbox, "runs in", fmt.Sprintf("a container of the image %s (id %s)%s", quoted(p.Name), line(p.Image), runtime))
}

// unenforcedLayers adds the folders of which a run gets a copy, if nothing keeps it
// from changing the folders themselves.
func (b *builder) unenforcedLayers(req *call.Request) {
	for _, l := range req.Run.Policy.Layers {
		says := layerWords(l, &req.Run.Policy) + "; nothing prevents it from changing the folder itself"
		if l.Kind == sandbox.LayerReadOnly {
			says = "should only read it, but nothing enforces that"
		}
		b.weighty(Notice, RoleWrites, "works on", fmt.Sprintf("%s%s, %s", quoted(l.Folder), reason(req, l.Folder), says))
	}
}

// run adds what would be started, where, and with what.
func (b *builder) run(r *call.Run) {
	b.section = SectionRun
	b.Command = typed(r)
	b.program(r.Command.Program)
	for i, a := range r.Command.Args {
		// Numbered, so that none can look like part of another.
		b.fact(RoleArgument, fmt.Sprintf("argument %d", i+1), quoted(a))
	}
	if len(r.Command.Args) == 0 {
		b.fact(RoleArgument, "arguments", "none")
	}
	if len(r.Command.Stdin) > 0 {
		b.fact(RoleInput, "input", input(r.Command.Stdin))
	}
	b.fact(RoleFolder, "folder", quoted(r.Command.Dir))
	b.variables(r)
}

// typed returns what would be started as one would type it in a shell: the program by
// the name with which it was called, its arguments, and after "<<<" its input. The
// last newline of the input is not shown, since shells add one.
func typed(r *call.Run) string {
	c := r.Command
	name := shellWord(c.Program.Name)
	if name == c.Program.Name && strings.Contains(name, "=") {
		name = "'" + name + "'" // otherwise it would set a variable
	}
	all := []string{name}
	for _, a := range c.Args {
		all = append(all, shellWord(a))
	}
	if len(c.Stdin) > 0 {
		all = append(all, "<<<", shellWord(strings.TrimSuffix(string(c.Stdin), "\n")))
	}
	return strings.Join(all, " ")
}

// program adds which file is started, and how it was found.
func (b *builder) program(p program.Program) {
	value := quoted(p.Path)
	if p.Resolved != "" && p.Resolved != p.Path {
		value += ", which is " + quoted(p.Resolved)
	}
	b.fact(RoleProgram, "program", value)
	if p.Shim != "" {
		b.fact(RoleProgram, "chosen by", "the shim "+quoted(p.Shim))
	}
	finds := ""
	for _, i := range p.Interpreters {
		if i.IsEnv {
			finds = i.Path // the next program is shown together with this one
			continue
		}
		parts := []string{quoted(i.Path)}
		if finds != "" {
			parts = append(parts, "started by "+quoted(finds))
			finds = ""
		}
		// Where the system's own links lead does not matter.
		if i.Resolved != i.Path && !(paths.IsSystem(i.Path) && paths.IsSystem(i.Resolved)) {
			parts = append(parts, "which is "+quoted(i.Resolved))
		}
		for _, a := range i.Args {
			parts = append(parts, "given "+quoted(a))
		}
		for _, kv := range i.Env {
			parts = append(parts, "with the variable "+quoted(kv))
		}
		b.fact(RoleInterpreter, "run by", strings.Join(parts, ", "))
	}
}

// variables adds the variables that the tool sets and the names of those that the
// user grants. Values that the tool sets are in quotes, so that they cannot look like
// a grant.
func (b *builder) variables(r *call.Run) {
	const label = "variable"
	for _, kv := range r.Env {
		b.weighty(Notice, RoleVariable, label, quoted(kv))
	}
	for _, v := range r.Granted.Env {
		b.weighty(Notice, RoleVariable, label, Name(v)+" (yours, by your configuration)")
	}
	for _, v := range r.Granted.Unset {
		b.fact(RoleVariable, label, Name(v)+" (granted by you, but not set)")
	}
}

// granted adds what else the user's configuration opens, and what it could not open.
func (b *builder) granted(g call.Granted, level sandbox.Level) {
	if g.Home != "" {
		only := ", with only what is named here"
		if level == sandbox.LevelNone {
			only = ""
		}
		b.fact(RoleHome, "home", quoted(g.Home)+only)
	}
	for _, m := range g.LeftOut {
		b.fact(RoleMissing, "left out", quoted(m.What)+": "+line(m.Why))
	}
}

// layerWords returns what happens to a run's changes in a layer.
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

// below returns path relative to the first of dirs that contains it.
func below(dirs []string, path string) string {
	for _, dir := range dirs {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return path
}

// reason returns, in brackets, why a run may read or change path.
func reason(r *call.Request, path string) string {
	switch {
	case slices.Contains(r.Run.Granted.Folders, path):
		for _, l := range r.Run.Policy.Links {
			if l.Target == path {
				// The granted path is a link, and may lead elsewhere by now.
				return " (by your configuration, where " + quoted(l.Path) + " leads)"
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

// gaps returns what the level in use does not confine here.
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
		return "full; it reaches only what is named here"
	case sandbox.LevelPartial:
		return "partial; most of this is enforced"
	default:
		return l.String()
	}
}

func networkWords(n sandbox.Network, enforced bool) string {
	switch {
	case n == sandbox.NetworkFull:
		return "full; it can send data anywhere"
	case !enforced:
		return "NOT blocked; it can send data anywhere"
	case n == sandbox.NetworkLoopback:
		return "loopback; only its own processes"
	case n == sandbox.NetworkHosts:
		return "HTTP and TLS, only to the hosts named here"
	default:
		return n.String()
	}
}

func networkWeight(n sandbox.Network, enforced bool) Weight {
	switch {
	case n == sandbox.NetworkFull || !enforced:
		return Danger
	case n == sandbox.NetworkLoopback, n == sandbox.NetworkHosts:
		return Notice
	default:
		return Plain
	}
}
