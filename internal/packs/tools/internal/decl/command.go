package decl

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// command compiles a command, which is an object or a list of arguments. Its placeholders
// can name t's parameters.
func (p *Parser) command(n *strictjson.Node, t *tools.Tool) *tools.Command {
	c := &tools.Command{Args: []template.Arg{}, Cwd: tools.CwdWorkspace, UsualCwd: tools.CwdWorkspace, Stdin: n.StringAt("stdin"), SkillEnv: n.IsTrue("skill_env")}
	const maxWords = 1000
	program, args := n.Get("program"), []*strictjson.Node(nil)
	if n.Kind == strictjson.List {
		program, args = n.Items[0], n.Items[1:]
	} else if a := n.Get("args"); a != nil {
		args = a.Items
	}
	if 1+len(args) > maxWords {
		p.Report(diag.Error, tools.CodeCommandLong, n, fmt.Sprintf("the command has %d words, and at most %d are read", 1+len(args), maxWords), "put the work into a program of the pack")
		return c
	}
	c.Program = program.Text
	p.Program(program)

	for _, n := range args {
		a, ok := p.Template(n)
		if ok {
			p.Known(a, n, t)
		}
		c.Args = append(c.Args, a)
	}
	p.Code(c, args)

	if env := n.Get("env"); env != nil && len(env.Members) > 0 {
		c.Env = make(map[string]template.Arg, len(env.Members))
		for _, m := range env.Members {
			c.Env[m.Key] = p.env(m, t)
		}
	}
	if cwd := n.Get("cwd"); cwd != nil && cwd.Text != "" {
		c.Cwd = cwd.Text
		p.cwd(cwd, t)
	}
	return c
}

// Program reports a program name that cannot be looked up.
func (p *Parser) Program(n *strictjson.Node) {
	if strings.Contains(n.Text, "{{") {
		p.Report(diag.Error, tools.CodePlaceholderInProgram, n, "a placeholder in the program", "name the program; placeholders belong in args")
		return
	}
	if problem, hint := checkProgram(n.Text); problem != "" {
		p.Report(diag.Error, tools.CodeProgramInvalid, n, problem, hint)
	}
}

// Template parses the text of n, and reports whether it is a template.
func (p *Parser) Template(n *strictjson.Node) (template.Arg, bool) {
	a, err := template.Parse(n.Text)
	if e, ok := errors.AsType[*template.Error](err); ok {
		p.Report(diag.Error, tools.CodePlaceholderInvalid, n, e.Problem, e.Hint)
		return template.Arg{}, false
	}
	return a, true
}

// meant returns a hint with the parameter that a placeholder may mean; empty if there is
// none.
func meant(name string, t *tools.Tool) string {
	if t.Input == nil || len(name) < 3 {
		return ""
	}
	var known []string
	for _, param := range t.Input.Params {
		known = append(known, param.Name)
	}
	if found := near.Names(name, known, 1); len(found) > 0 {
		return fmt.Sprintf("did you mean {{%s}}?", phrase.Clip(found[0]))
	}
	return ""
}

// Known reports placeholders in a that name neither a parameter nor a context value.
func (p *Parser) Known(a template.Arg, n *strictjson.Node, t *tools.Tool) {
	for _, piece := range a.Pieces {
		if piece.Form == template.Literal {
			continue
		}
		if name, ok := strings.CutPrefix(piece.Name, template.ContextPrefix); ok {
			if !template.IsContext(name) {
				p.Report(diag.Error, tools.CodePlaceholderUnknown, n, fmt.Sprintf("%s names no context", piece),
					"there are context.cwd, context.file, context.url, context.selection and context.clipboard")
			}
			continue
		}
		if !t.Knows(piece.Name) {
			or := ", or write {{{{ for a literal {{"
			if template.IsContext(piece.Name) {
				or = fmt.Sprintf(", or write {{context.%s}} for what the user's side knows", piece.Name)
			}
			p.Report(diag.Error, tools.CodePlaceholderUnknown, n, fmt.Sprintf("%s names no %s", piece, p.dialect.Parameter), cmp.Or(meant(piece.Name, t), p.dialect.Declare+or))
		}
	}
}

// joined parses a template in a place that takes a single text.
func (p *Parser) joined(n *strictjson.Node, t *tools.Tool) template.Arg {
	a, ok := p.Template(n)
	if !ok {
		return template.Arg{}
	}
	p.Known(a, n, t)
	for _, piece := range a.Pieces {
		if piece.Form == template.Spread || piece.Form == template.Option {
			p.Report(diag.Error, tools.CodePlaceholderInvalid, n, fmt.Sprintf("%s makes several arguments, and only one is possible here", piece), fmt.Sprintf("write {{%s}}", piece.Name))
		}
	}
	return a
}

func (p *Parser) env(m strictjson.Member, t *tools.Tool) template.Arg {
	if !ValidEnvName(m.Key) {
		p.Report(diag.Error, tools.CodeEnvName, m.Value, fmt.Sprintf("%+q is not the name of an environment variable", phrase.Clip(m.Key)), "use letters, digits and _")
	} else if rule := envForbidden(m.Key); rule != "" {
		p.Report(diag.Error, tools.CodeEnvForbidden, m.Value, fmt.Sprintf("a pack cannot set %q (%s)", phrase.Clip(m.Key), rule),
			"remove it; a user can grant variables to a tool in their own configuration")
	}
	return p.joined(m.Value, t)
}

func (p *Parser) cwd(n *strictjson.Node, t *tools.Tool) {
	a := p.joined(n, t)
	if lit, ok := a.Literal(); ok && a.Source != "" && lit != tools.CwdWorkspace && lit != tools.CwdPackRoot && lit != tools.CwdProject {
		p.Report(diag.Error, tools.CodeCwdInvalid, n, fmt.Sprintf("cwd %+q is not a folder that tools run in", phrase.Clip(lit)), "write workspace, pack_root or project")
	}
}

// interpreters take program text as an argument after these options.
var interpreters = []struct {
	names  []string
	option func(string) bool
	shell  bool // an error, not a warning
	rest   bool // every later argument is part of the program text
}{
	{[]string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"}, shortOption('c'), true, false},
	{[]string{"cmd", "cmd.exe"}, oneOf("/c", "/C", "/k", "/K"), true, true},
	{[]string{"powershell", "powershell.exe", "pwsh", "pwsh.exe"}, oneOf("-c", "-C", "-command", "-Command"), true, true},
	{[]string{"python", "python3"}, shortOption('c'), false, false},
	{[]string{"node", "deno", "bun"}, oneOf("-e", "--eval", "-p", "--print"), false, false},
	{[]string{"perl", "ruby"}, shortOption('e'), false, false},
}

// shortOption matches a group of one-letter options that ends in c.
func shortOption(c byte) func(string) bool {
	return func(s string) bool {
		return len(s) > 1 && s[0] == '-' && s[1] != '-' && s[len(s)-1] == c
	}
}

func oneOf(options ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(options, s) }
}

// Code reports placeholders in program text for an interpreter, since the interpreter would
// execute the value. It also finds interpreters behind env, nice and the like.
func (p *Parser) Code(c *tools.Command, nodes []*strictjson.Node) {
	words := []string{c.Program}
	placeholder := make([]bool, 1, len(c.Args)+1) // whether each word has a placeholder
	for _, a := range c.Args {
		lit, ok := a.Literal()
		words = append(words, lit)
		placeholder = append(placeholder, !ok)
	}
	// From the last word to the first, find the next switch of each kind of interpreter and
	// the next placeholder.
	after := make([]int, len(interpreters))
	codeAt := 0 // the first word with a placeholder in code; 0 for none
	var of int  // its interpreter
	next := 0   // the next placeholder
	nexts := make([]int, len(words)+1)
	for i := len(words) - 1; i >= 0; i-- {
		name := path.Base(strings.ReplaceAll(words[i], `\`, "/"))
		for k, in := range interpreters {
			if at := after[k]; at > 0 && at+1 < len(words) && slices.Contains(in.names, name) {
				if bad := nexts[at+1]; bad == at+1 || in.rest && bad > 0 {
					codeAt, of = bad, k
				}
			}
			if in.option(words[i]) {
				after[k] = i
			}
		}
		if placeholder[i] {
			next = i
		}
		nexts[i] = next
	}
	switch {
	case codeAt == 0:
	case interpreters[of].shell:
		p.Report(diag.Error, tools.CodePlaceholderInShell, nodes[codeAt-1], "a placeholder in shell code, where a value could do anything",
			`pass the value as an argument of the code: ["-c", "echo \"$1\"", "sh", "{{x}}"]`)
	default:
		p.Report(diag.Warning, tools.CodePlaceholderInCode, nodes[codeAt-1], "a placeholder in program text, where a value could do anything",
			"pass the value as an argument of the program")
	}
}
