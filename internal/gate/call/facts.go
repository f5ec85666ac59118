package call

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// The names of facts that are looked up by name.
const (
	FactPerson      = "person"
	FactKind        = "kind"
	FactWhere       = "pack" // its id and its folder
	FactPack        = "pack digest"
	FactDefinition  = "definition"
	FactProgram     = "program"
	FactInterpreter = "interpreter"
	FactNetwork     = "network"
	FactEnviron     = "environment"
	FactCache       = "cache"
	FactArgs        = "arguments"
	FactInputs      = "files of the arguments"
	FactReads       = "files that it can read"
	FactPlace       = "runner"
)

// A Fact is one thing that a person was shown and that a grant is bound to.
type Fact struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Facts returns what an answer for more than this call is bound to: the pack for open
// and enable, the pack's files for read, the tool with any valid arguments for a run,
// and the exact argv and folder for a command that the model wrote.
func (c *Call) Facts() []Fact { return c.facts(c.level) }

func (r *Request) facts(level sandbox.Level) []Fact {
	f := append(r.packFacts(string(r.Kind)), Fact{"workspace", []string{r.mask(r.Workspace), fmt.Sprint(r.Scratch)}})
	if r.Run == nil {
		return f
	}
	return append(f, r.runFacts(level)...)
}

// packFacts returns whose answer it is, for calls of which kinds, and the pack.
func (r *Request) packFacts(kinds ...string) []Fact {
	return []Fact{
		{FactPerson, r.Caller.who()},
		{FactKind, kinds},
		{FactWhere, []string{r.Pack.ID, r.Pack.Dir}},
		{FactPack, []string{r.Pack.Digest, fmt.Sprint(r.Pack.Loose), fmt.Sprint(r.Pack.Partial)}},
		{"trust", []string{string(r.Pack.Trust)}},
		{"attached", []string{r.Pack.Attached}},
	}
}

// UseFacts returns what an answer of [KindUse] about the request's pack is bound to.
func (r *Request) UseFacts() []Fact { return r.packFacts(useKinds()...) }

func (r *Request) runFacts(level sandbox.Level) []Fact {
	run := r.Run
	c, p := run.Command, run.Policy
	f := []Fact{
		{"tool", []string{run.Tool}},
		{FactDefinition, []string{run.Definition, fmt.Sprint(run.ReadOnly)}},
		{FactProgram, []string{c.Program.Path, c.Program.Resolved, c.Program.Digest, c.Program.Name, c.Program.Shim}},
		{FactInterpreter, interpreters(c.Program.Interpreters)},
		{"installation", slices.Concat(c.Program.Needs, links(c.Program.Links))},
		{"folder", append(r.masked(c.Dir, c.Workspace), fmt.Sprint(run.UsualDir))},
		{"output", []string{fmt.Sprint(c.Join)}},
		{"may read", r.masked(p.ReadOnly...)},
		{"may change", r.masked(p.Writable...)},
		{"may change in a layer", layers(p.Layers)},
		{"changes", changeRules(&p)},
		{FactCache, cacheFact(run)},
		{"private", r.masked(p.Private...)},
		{"links", links(p.Links)},
		{"images", images(p.Images)},
		{FactInputs, inputs(run.Inputs)},
		{FactReads, r.masked(inputs(run.Reads)...)},
		{"project", []string{run.Project}},
		{"granted variables", run.Granted.Env},
		{"granted variables without a value", run.Granted.Unset},
		{"granted folders", run.Granted.Folders},
		{"left out", missing(run.Granted.LeftOut)},
		{"home", []string{run.Granted.Home}},
		{FactNetwork, p.Reach()},
		{"limits", limitsOf(p)},
		{"sandbox", []string{level.String()}},
	}
	if !run.Place.Local() { // an answer from before other places existed holds here
		f = append(f, Fact{FactPlace, place(run.Place)})
	}
	if run.Tool == "" {
		return append(f, Fact{FactArgs, c.Args}, Fact{FactEnviron, r.hashed(c.Env)}, Fact{"input", []string{hexSum(c.Stdin)}})
	}
	return append(f, Fact{"variables", EnvNames(c.Env)})
}

// place returns where a program runs, with which image, and under which terms.
func place(p sandbox.Place) []string { return []string{p.Runner, p.Image, p.Name, p.Runtime, p.Terms} }

// who returns whose answer it is. The user at this machine has no name. A token
// without a name that other machines can use must not be taken for that user.
func (c *Caller) who() []string {
	if c.Person == "" && c.Origin == OriginNetwork {
		return []string{"", "everyone who has the token"}
	}
	return []string{c.Person}
}

// ownWorkspace stands for a workspace that was made for the chat. No path begins with
// it.
const ownWorkspace = "the chat's workspace"

// masked returns paths, with a fixed word in place of a workspace that differs from
// chat to chat.
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

// hashed returns variables as "NAME=" and a digest of the value: facts are kept in a
// file, and the value may be a secret.
func (r *Request) hashed(env []string) []string {
	out := make([]string, len(env))
	for i, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		out[i] = name + "=" + hexSum([]byte(r.mask(value)))
	}
	return out
}

// EnvNames returns the names of variables that are written as K=V.
func EnvNames(env []string) []string {
	names := make([]string, len(env))
	for i, kv := range env {
		names[i], _, _ = strings.Cut(kv, "=")
	}
	return names
}

// InterpreterValues is how many values the fact of interpreters has for each
// interpreter.
const InterpreterValues = 4

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

// layers returns the folders with their kinds of layers, one text each. It leaves out
// why a kind is no better one, because that text may change.
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

// changeRules returns what else is decided about a run's changes.
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

// FactOf returns the values of the fact with this name, or nil if there is none.
func FactOf(facts []Fact, name string) []string {
	i := slices.IndexFunc(facts, func(f Fact) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return facts[i].Values
}

// DigestOf returns a digest by which the facts of a grant and those of a call are
// compared.
func DigestOf(facts []Fact) string {
	s := newSum("grant")
	for _, f := range facts {
		s.add(f.Name, f.Values...)
	}
	return s.String()
}

// Subject identifies what a grant is about, even if that changes: whose answer it is,
// which pack in which folder, and which tool or command.
func (r *Request) Subject() string {
	s := r.packSubject(r.Kind)
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

// UseSubject returns the subject of an answer of [KindUse] about the request's pack.
func (r *Request) UseSubject() string { return r.packSubject(KindUse).String() }

func (r *Request) packSubject(kind Kind) *sum {
	s := newSum("subject")
	s.add("person", r.Caller.who()...)
	s.add("kind", string(kind))
	s.add("pack", r.Pack.ID, r.Pack.Dir)
	return s
}
