package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// The facts by whose names others are found.
const (
	factPack        = "pack digest"
	factDefinition  = "definition"
	factProgram     = "program"
	factInterpreter = "interpreter"
	factNetwork     = "network"
	factEnviron     = "environment"
	factCache       = "cache"
	factArgs        = "arguments"
	factInputs      = "files of the arguments"
	factReads       = "files that it can read"
)

// maxFiles is how many files of a pack a grant remembers, so that it can name
// the ones that changed.
const maxFiles = 2000

// facts are what an answer for more than this call is bound to: the pack for
// open and enable, the pack's files for read, the tool with any valid arguments
// for a run, and the exact argv and folder for a command that the model wrote.
func (r *Request) facts(level sandbox.Level) []Fact {
	f := []Fact{
		{"person", r.Caller.who()},
		{"kind", []string{string(r.Kind)}},
		{"pack", []string{r.Pack.ID, r.Pack.Dir}},
		{factPack, []string{r.Pack.Digest, fmt.Sprint(r.Pack.Loose), fmt.Sprint(r.Pack.Partial)}},
		{"trust", []string{string(r.Pack.Trust)}},
		{"attached", []string{r.Pack.Attached}},
		{"workspace", []string{r.mask(r.Workspace), fmt.Sprint(r.Scratch)}},
	}
	if r.Run == nil {
		return f
	}
	return append(f, r.runFacts(level)...)
}

func (r *Request) runFacts(level sandbox.Level) []Fact {
	run := r.Run
	c, p := run.Command, run.Policy
	f := []Fact{
		{"tool", []string{run.Tool}},
		{factDefinition, []string{run.Definition, fmt.Sprint(run.ReadOnly)}},
		{factProgram, []string{c.Program.Path, c.Program.Resolved, c.Program.Digest, c.Program.Name, c.Program.Shim}},
		{factInterpreter, interpreters(c.Program.Interpreters)},
		{"installation", slices.Concat(c.Program.Needs, links(c.Program.Links))},
		{"folder", append(r.masked(c.Dir, c.Workspace), fmt.Sprint(run.UsualDir))},
		{"output", []string{fmt.Sprint(c.Join)}},
		{"may read", r.masked(p.ReadOnly...)},
		{"may change", r.masked(p.Writable...)},
		{"may change in a layer", layers(p.Layers)},
		{"changes", changeRules(&p)},
		{factCache, cacheFact(run)},
		{"private", r.masked(p.Private...)},
		{"links", links(p.Links)},
		{"images", images(p.Images)},
		{factInputs, inputs(run.Inputs)},
		{factReads, r.masked(inputs(run.Reads)...)},
		{"project", []string{run.Project}},
		{"granted variables", run.Granted.Env},
		{"granted variables without a value", run.Granted.Unset},
		{"granted folders", run.Granted.Folders},
		{"left out", missing(run.Granted.LeftOut)},
		{"home", []string{run.Granted.Home}},
		{factNetwork, []string{p.Network.String()}},
		{"limits", []string{fmt.Sprintf("%+v", p.Limits)}}, // numbers only
		{"sandbox", []string{level.String()}},
	}
	if run.Tool == "" {
		return append(f, Fact{factArgs, c.Args}, Fact{factEnviron, r.hashed(c.Env)}, Fact{"input", []string{hexSum(c.Stdin)}})
	}
	return append(f, Fact{"variables", envNames(c.Env)})
}

// who is whose answer it is. A token that no name belongs to, and that other
// machines can use, is not the user at this one, who has no name either.
func (c *Caller) who() []string {
	if c.Person == "" && c.Origin == OriginNetwork {
		return []string{"", "whoever has the token"}
	}
	return []string{c.Person}
}

// ownWorkspace stands for a workspace that was made for the chat. No path
// begins like it.
const ownWorkspace = "the chat's workspace"

// masked returns paths, with the same word for a workspace that is another one
// in each chat.
func (r *Request) masked(paths ...string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = r.mask(p)
	}
	return out
}

func (r *Request) mask(path string) string {
	ws := r.Workspace
	if !r.Scratch || ws == "" {
		return path
	}
	if path == ws {
		return ownWorkspace
	}
	if rest, ok := strings.CutPrefix(path, ws); ok && (rest[0] == '/' || rest[0] == '\\') {
		return ownWorkspace + rest
	}
	return path
}

// hashed returns variables as "NAME=" and a digest of the value, which may be
// a secret: facts are kept in a file.
func (r *Request) hashed(env []string) []string {
	out := make([]string, len(env))
	for i, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		out[i] = name + "=" + hexSum([]byte(r.mask(value)))
	}
	return out
}

func envNames(env []string) []string {
	names := make([]string, len(env))
	for i, kv := range env {
		names[i], _, _ = strings.Cut(kv, "=")
	}
	return names
}

// interpreterValues is how many values interpreters has for each.
const interpreterValues = 4

// interpreters returns, for each program that runs a script, its path, where that
// leads, its digest, and how it is started.
func interpreters(all []program.Interpreter) []string {
	var out []string
	for _, i := range all {
		out = append(out, i.Path, i.Resolved, i.Digest, fmt.Sprintf("%q %q %q %t %t", i.Name, i.Args, i.Env, i.IsEnv, i.OnPath))
	}
	return out
}

func links(all []paths.Link) []string {
	var out []string
	for _, l := range all {
		out = append(out, l.Path, l.Target)
	}
	return out
}

// layers are the folders with what they are for the run, one text each. Why a
// kind is no better one may be said differently tomorrow.
func layers(all []sandbox.Layer) []string {
	var out []string
	for _, l := range all {
		words := l.Kind.String()
		if l.IsGit() {
			words += ", git " + l.Git.Dir + " of " + l.Git.Common
		}
		if l.Commits {
			words += ", with commits"
		}
		out = append(out, l.Folder+" ("+words+")")
	}
	return out
}

// changeRules say what else is decided of a run's changes.
func changeRules(p *sandbox.Policy) []string {
	var out []string
	if p.Review {
		out = append(out, "held until seen")
	}
	if p.GitWrite {
		out = append(out, "commits are applied")
	}
	return out
}

// cacheFact names what a tool keeps between its runs.
func cacheFact(r *Run) []string {
	return slices.DeleteFunc([]string{r.Cache, r.Policy.Cache}, func(s string) bool { return s == "" })
}

func images(all []sandbox.Image) []string {
	var out []string
	for _, i := range all {
		out = append(out, i.At, i.From)
	}
	return out
}

func inputs(all []File) []string {
	var out []string
	for _, f := range all {
		out = append(out, f.Path, f.Digest)
	}
	return out
}

func missing(all []Missing) []string {
	var out []string
	for _, m := range all {
		out = append(out, m.What, m.Why)
	}
	return out
}

// digestOf names facts: those of a grant, and those of a call it may cover.
func digestOf(facts []Fact) string {
	s := newSum("grant")
	for _, f := range facts {
		s.add(f.Name, f.Values...)
	}
	return s.String()
}

// subject names what a grant is about, whatever becomes of it: whose answer,
// which pack in which folder, and which tool or command.
func (r *Request) subject() string {
	s := newSum("subject")
	s.add("person", r.Caller.who()...)
	s.add("kind", string(r.Kind))
	s.add("pack", r.Pack.ID, r.Pack.Dir)
	if r.Kind == KindRead && r.Pack.Dir == "" {
		s.add("workspace", r.mask(r.Workspace))
	}
	if r.Run != nil {
		s.add("tool", r.Run.Tool)
		if r.Run.Tool == "" {
			s.add("program", r.Run.Command.Program.Path)
			s.add("arguments", r.Run.Command.Args...)
			s.add("folder", r.mask(r.Run.Command.Dir))
		}
	}
	return s.String()
}

// grant is what "for this chat" or "always" would leave behind.
func (r *Request) grant(level sandbox.Level) Grant {
	g := Grant{
		Person: r.Caller.Person, Kind: r.Kind, Pack: r.Pack.ID, Dir: r.Pack.Dir,
		Subject: r.subject(), Facts: r.facts(level),
	}
	g.Digest = digestOf(g.Facts)
	g.ID = g.Digest[:8]
	if len(r.Pack.Files) <= maxFiles {
		g.Files = r.Pack.Files // never changed, and the same for all requests about the pack
	}
	if r.Run != nil {
		g.Tool = r.Run.Tool
		if g.Tool == "" {
			g.Argv = append([]string{r.Run.Command.Program.Path}, r.Run.Command.Args...)
		}
	}
	return g
}

// clone returns a copy of g that shares nothing that could be changed.
func (g Grant) clone() Grant {
	g.Argv, g.Files, g.Facts = slices.Clone(g.Argv), slices.Clone(g.Files), slices.Clone(g.Facts)
	for i, f := range g.Facts {
		g.Facts[i].Values = slices.Clone(f.Values)
	}
	if g.Void != nil {
		g.Void = &Void{At: g.Void.At, Changes: slices.Clone(g.Void.Changes)}
	}
	return g
}

func (g *Grant) fact(name string) []string {
	i := slices.IndexFunc(g.Facts, func(f Fact) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return g.Facts[i].Values
}

// contentChanged reports whether what was approved is no longer there: the
// pack, the declaration of the tool, or the bytes of a program at the same
// path. Other facts may differ from one server to the next, as another project
// does, and change back.
func (g *Grant) contentChanged(now *Grant) bool {
	if !slices.Equal(g.fact(factPack), now.fact(factPack)) || !slices.Equal(g.fact(factDefinition), now.fact(factDefinition)) {
		return true
	}
	then, is := g.fact(factProgram), now.fact(factProgram)
	if len(then) > 2 && len(is) > 2 && then[1] == is[1] && then[2] != is[2] {
		return true
	}
	then, is = g.fact(factInterpreter), now.fact(factInterpreter)
	for i := 0; i+interpreterValues <= min(len(then), len(is)); i += interpreterValues {
		if then[i+1] == is[i+1] && then[i+2] != is[i+2] {
			return true
		}
	}
	return false
}

// maxChanges is how many changes a question names.
const maxChanges = 12

// changes says what differs between a grant and a call that is about the same,
// one line each, escaped. What the call may do comes before files, and files
// that changed before those that came or went, so that many of these hide
// nothing.
func (g *Grant) changes(now *Grant) []string {
	files := fileChanges(g.Files, now.Files)
	var lines []string
	for _, f := range now.Facts {
		then := g.fact(f.Name)
		if slices.Equal(then, f.Values) || f.Name == factPack && len(files) > 0 {
			continue // its files say more
		}
		lines = append(lines, factChange(f.Name, then, f.Values)...)
	}
	lines = append(lines, files...)
	if extra := len(lines) - maxChanges; extra > 0 {
		lines = append(lines[:maxChanges:maxChanges], fmt.Sprintf("and %d more", extra))
	}
	return lines
}

// fileChanges names the files that differ. Both lists are empty when there
// were too many.
func fileChanges(then, now []File) []string {
	if len(then) == 0 || len(now) == 0 {
		return nil
	}
	index := func(files []File) map[string]string {
		m := make(map[string]string, len(files))
		for _, f := range files {
			m[f.Path] = f.Digest
		}
		return m
	}
	before, after := index(then), index(now)
	var changed, more, gone []string
	for _, f := range now {
		switch old, ok := before[f.Path]; {
		case !ok:
			more = append(more, f.Path)
		case old != f.Digest:
			changed = append(changed, f.Path)
		}
	}
	for _, f := range then {
		if _, ok := after[f.Path]; !ok {
			gone = append(gone, f.Path)
		}
	}
	var lines []string
	for _, group := range []struct {
		paths     []string
		one, many string
	}{{changed, "the file %s changed", "%d files changed"}, {more, "the file %s is new", "%d files are new"}, {gone, "the file %s is gone", "%d files are gone"}} {
		const enough = 4
		slices.Sort(group.paths)
		for _, p := range group.paths[:min(len(group.paths), enough)] {
			lines = append(lines, fmt.Sprintf(group.one, name(p)))
		}
		if rest := len(group.paths) - enough; rest > 0 {
			lines = append(lines, "and "+fmt.Sprintf(group.many, rest)+" besides")
		}
	}
	return lines
}

// factChange says how one fact differs.
func factChange(fact string, then, now []string) []string {
	value := func(values []string) string {
		if len(values) == 0 {
			return "none"
		}
		return orNone(values[0])
	}
	switch fact {
	case factPack:
		switch {
		case value(then) != value(now): // the digest
			return []string{"the pack's files changed"}
		case len(then) != len(now):
			return []string{"packs-mcp was updated: answers hold for more about the pack's files"}
		}
		return []string{"what the pack's digest leaves out changed"}
	case factDefinition:
		return []string{"what the tool declares changed"}
	case factProgram:
		return programChange(then, now)
	case factInterpreter:
		return interpreterChange(then, now)
	case "attached":
		return []string{"the pack was detached and attached again"}
	case "folder":
		if value(then) == value(now) {
			return nil // the rest of it is a fact of its own, the workspace
		}
		fallthrough
	case factNetwork, "workspace", "sandbox", "project", "home", "trust", "person":
		return []string{fmt.Sprintf("%s was %s, is %s", fact, value(then), value(now))}
	case factInputs:
		return []string{"a file that the arguments name changed"}
	case factReads:
		return []string{"files that it can read changed"}
	case "limits", "input":
		return []string{"the " + fact + " changed"}
	case "output":
		return []string{"how its output is put together changed"}
	case factEnviron:
		then, now = envNames(differing(then, now)), envNames(differing(now, then))
		both := slices.Compact(slices.Sorted(slices.Values(slices.Concat(then, now))))
		return []string{"variables differ: " + names(both)}
	}
	more, fewer := differing(now, then), differing(then, now)
	var lines []string
	if len(more) > 0 {
		lines = append(lines, fmt.Sprintf("%s: now also %s", fact, names(more)))
	}
	if len(fewer) > 0 {
		lines = append(lines, fmt.Sprintf("%s: no longer %s", fact, names(fewer)))
	}
	if lines == nil {
		lines = []string{fact + " changed"} // their order, or how often one is there
	}
	return lines
}

// programChange says how a program differs: its path, where that leads, its
// bytes, the name it was asked for by, or the shim that chose it.
func programChange(then, now []string) []string {
	const values = 5 // as runFacts has them
	if len(then) != values || len(now) != values {
		return []string{"the program changed"}
	}
	var lines []string
	for i, says := range []string{"the program was %s, is %s", "the program led to %s, leads to %s", "", "the program was asked for as %s, is as %s", "the program's shim was %s, is %s"} {
		switch was, is := then[i], now[i]; {
		case was == is:
		case i > 0 && i <= 2 && then[0] != now[0], i == 2 && then[1] != now[1]: // another program has other bytes
		case i == 2:
			lines = append(lines, "the bytes of the program changed")
		default:
			lines = append(lines, fmt.Sprintf(says, orNone(was), orNone(is)))
		}
	}
	return lines
}

// interpreterChange says how the programs that run a script differ.
func interpreterChange(then, now []string) []string {
	one := func(values []string, i int) []string { return values[i*interpreterValues : (i+1)*interpreterValues] }
	n := min(len(then), len(now)) / interpreterValues
	for i := range n {
		was, is := one(then, i), one(now, i)
		switch {
		case slices.Equal(was, is):
			continue
		case was[0] != is[0]:
			return []string{fmt.Sprintf("the interpreter was %s, is %s", name(was[0]), name(is[0]))}
		case was[1] != is[1]:
			return []string{fmt.Sprintf("the interpreter %s led to %s, leads to %s", name(is[0]), name(was[1]), name(is[1]))}
		case was[2] != is[2]:
			return []string{"the bytes of the interpreter changed"}
		}
		return []string{fmt.Sprintf("what the interpreter %s is given changed", name(is[0]))}
	}
	last := func(values []string) string {
		if len(values) < interpreterValues {
			return "none"
		}
		return name(one(values, len(values)/interpreterValues-1)[0])
	}
	switch {
	case len(then)%interpreterValues != 0:
		return []string{"packs-mcp was updated: answers hold for more about the interpreter"}
	case last(then) == last(now):
		return []string{"what runs the interpreter changed"}
	}
	return []string{fmt.Sprintf("the interpreter was %s, is %s", last(then), last(now))}
}

// orNone shows a name that may be empty.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return name(s)
}

// differing returns what a has and b has not.
func differing(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(v string) bool { return slices.Contains(b, v) })
}

// names shows a few values.
func names(values []string) string {
	const enough = 4
	var shown []string
	for _, v := range values[:min(len(values), enough)] {
		shown = append(shown, safetext.Quote(v))
	}
	text := strings.Join(shown, ", ")
	if len(values) > enough {
		text += fmt.Sprintf(" and %d more", len(values)-enough)
	}
	return text
}
