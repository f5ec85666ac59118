// Package tools defines the [Tool] that declarations in every format become, checks
// the arguments of a call against it, and turns them into a program and its
// arguments.
//
// It parses no declarations: package formats and those beside it do. A Tool does not
// know which format it came from. The package reads no files, runs nothing, approves
// nothing and confines nothing: an [Invocation] is a proposal.
package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/toolname"
)

// A Tool is one compiled tool. It is immutable and safe for concurrent use.
type Tool struct {
	Name        string // [a-zA-Z0-9_-]{1,64}, unique in its set; with . : / too if the tool is declared only
	Title       string
	Description string // whole, as the pack wrote it; not escaped
	Version     string // of the tool itself, or ""

	InputSchema  json.RawMessage // JSON Schema as declared, always an object schema
	OutputSchema json.RawMessage // JSON Schema as declared, or nil

	Sources map[string]Source // :: parameter → where its value comes from if the model gives none

	Command      *Command // nil: declared only, never run
	DeclaredOnly string   // why Command is nil

	Policy   Policy
	Output   Output
	Examples []string
	Modes    []string // empty, or with "Global": offered in every mode

	File string // as passed to the parser
	Line int    // 1-based line of the declaration

	Input *schema.Input // InputSchema, compiled; nil in a Tool that no parser made
}

// schema returns the compiled input schema. For a Tool that no parser made, it
// compiles the schema on every call; if InputSchema is invalid, the result accepts
// nothing.
func (t *Tool) schema() *schema.Input {
	if t.Input != nil {
		return t.Input
	}
	src := t.InputSchema
	if len(src) == 0 {
		src = json.RawMessage(schema.Empty)
	}
	in, err := schema.Parse(src)
	if err != nil {
		if in, err = schema.Parse(json.RawMessage("false")); err != nil {
			panic(err) // false is a schema
		}
	}
	return in
}

// Knows reports whether a placeholder may use name: it is a property or a fixed
// value.
func (t *Tool) Knows(name string) bool {
	return t.Sources[name].From == SourceLiteral || t.schema().Param(name) != nil
}

// A Command is what a tool runs: a program and templates for its arguments,
// never a shell.
type Command struct {
	Program string                  // a bare name, an absolute path, or a path in the pack beginning with "./"
	Args    []template.Arg          // without the program
	Env     map[string]template.Arg // :: variable → value
	Cwd     string                  // CwdWorkspace, CwdPackRoot, CwdProject, or a template such as "{{context.cwd}}"
	Stdin   string                  // "" (empty standard input) or StdinJSON

	UsualCwd string // Cwd if the declaration names no folder: CwdWorkspace, or CwdProject in Markdown
	SkillEnv bool   // it also gets GIBBERISH_SKILL_NAME, GIBBERISH_SKILL_DIR and GIBBERISH_MODE, which the caller knows
}

// Templates returns every template of the command: arguments, environment,
// working folder.
func (c *Command) Templates() []template.Arg {
	out := make([]template.Arg, 0, len(c.Args)+len(c.Env)+1)
	out = append(out, c.Args...)
	for _, a := range c.Env {
		out = append(out, a)
	}
	if a, err := template.Parse(c.Cwd); err == nil {
		out = append(out, a)
	}
	return out
}

// Folders that [Command.Cwd] can name.
const (
	CwdWorkspace = "workspace"
	CwdPackRoot  = "pack_root"
	CwdProject   = "project"
)

// StdinJSON gives the arguments as one line of JSON on standard input.
const StdinJSON = "json"

// Network says which network access a tool asks for. The zero value is none.
type Network string

// What a tool can ask for.
const (
	NetworkNone     Network = "none"
	NetworkLoopback Network = "loopback"
	NetworkFull     Network = "full"
	NetworkHosts    Network = "hosts" // those of the Policy
)

// A Policy is what a tool asks for. It can tighten what a user allows, never
// widen it. The zero value asks for nothing.
type Policy struct {
	ReadOnly         bool
	DeclaresReadOnly bool // the author wrote it; otherwise ReadOnly is only the format's default
	AlwaysAsk        bool
	Review           bool          // a person sees every change before it is applied
	Cache            string        // name of the cache kept between its runs; empty: none
	Network          Network       // "" is NetworkNone
	Hosts            []hosts.Host  // with NetworkHosts: sorted, each once, 1 to 16: each is a line of the question
	Timeout          time.Duration // 1 s to 300 s; 0: the default of the configuration
	AllowedExitCodes []int         // 0 to 255; nil: only 0
}

// Reach returns the network access that the tool asks for, in words: "none",
// "loopback", "full", or its hosts.
func (p *Policy) Reach() string {
	if p.Network != NetworkHosts {
		return string(cmp.Or(p.Network, NetworkNone))
	}
	return strings.Join(p.HostNames(), ", ")
}

// HostNames returns the Hosts as a tool declares them.
func (p *Policy) HostNames() []string {
	names := make([]string, len(p.Hosts))
	for i, h := range p.Hosts {
		names[i] = h.String()
	}
	return names
}

// ReviewAll is the value of a policy's review.
const ReviewAll = "all"

// MaxTimeout is the longest time that a pack can ask for.
const MaxTimeout = 300 * time.Second

// Allows reports whether a program that exited with code succeeded.
func (p Policy) Allows(code int) bool {
	if p.AllowedExitCodes == nil {
		return code == 0
	}
	return slices.Contains(p.AllowedExitCodes, code)
}

// ErrDeclaredOnly means that a tool has no command.
var ErrDeclaredOnly = errors.New("tool is declared only")

// Limits bounds what a parser reads. A zero field stands for its default.
type Limits struct {
	Size        int // bytes of a file; 1 MiB
	Count       int // tools in a file; 200
	Description int // characters that models see of a description; more is a warning; 1,024
}

// OrDefault returns l with zeros replaced by defaults.
func (l Limits) OrDefault() Limits {
	if l.Size <= 0 {
		l.Size = 1 << 20
	}
	if l.Count <= 0 {
		l.Count = 200
	}
	if l.Description <= 0 {
		l.Description = 1024
	}
	return l
}

// A Set has the tools of one file, in the order of declaration.
type Set struct {
	Tools []*Tool
}

// Lookup returns the tool with the name, or nil. It ignores letter case and the
// difference between "-", "_" and ".": no two tools of a set differ only in these.
func (s *Set) Lookup(name string) *Tool {
	if s == nil {
		return nil
	}
	folded := toolname.Fold(name)
	for _, t := range s.Tools {
		if toolname.Fold(t.Name) == folded {
			return t
		}
	}
	return nil
}
