package tools

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// command compiles a command, an object or a list of arguments, against the
// parameters that its placeholders can name.
func (p *parser) command(n *node, in *inputSchema) *Command {
	c := &Command{Args: []Arg{}, Cwd: CwdWorkspace, UsualCwd: CwdWorkspace, Stdin: n.str("stdin"), SkillEnv: n.isTrue("skill_env")}
	const maxWords = 1000
	program, args := n.get("program"), []*node(nil)
	if n.kind == kindList {
		program, args = n.items[0], n.items[1:]
	} else if a := n.get("args"); a != nil {
		args = a.items
	}
	if 1+len(args) > maxWords {
		p.report(diag.Error, CodeCommandLong, n, fmt.Sprintf("the command has %d words, and at most %d are read", 1+len(args), maxWords), "put the work into a program of the pack")
		return c
	}
	c.Program = program.text
	p.program(program)

	for _, n := range args {
		a, ok := p.template(n)
		if ok {
			p.known(a, n, in)
		}
		c.Args = append(c.Args, a)
	}
	p.code(c, args)

	if env := n.get("env"); env != nil && len(env.members) > 0 {
		c.Env = make(map[string]Arg, len(env.members))
		for _, m := range env.members {
			c.Env[m.key] = p.env(m, in)
		}
	}
	if cwd := n.get("cwd"); cwd != nil && cwd.text != "" {
		c.Cwd = cwd.text
		p.cwd(cwd, in)
	}
	return c
}

func (p *parser) program(n *node) {
	if strings.Contains(n.text, "{{") {
		p.report(diag.Error, CodePlaceholderInProgram, n, "a placeholder in the program", "name the program; placeholders belong in args")
		return
	}
	if problem, hint := checkProgram(n.text); problem != "" {
		p.report(diag.Error, CodeProgramInvalid, n, problem, hint)
	}
}

// template parses the text of n, and reports whether it is a template.
func (p *parser) template(n *node) (Arg, bool) {
	a, err := parseArg(n.text)
	if e, ok := errors.AsType[*templateError](err); ok {
		p.report(diag.Error, CodePlaceholderInvalid, n, e.Problem, e.Hint)
		return Arg{}, false
	}
	return a, true
}

// known reports placeholders of a that name neither a parameter nor context.
func (p *parser) known(a Arg, n *node, in *inputSchema) {
	for _, piece := range a.pieces {
		if piece.form == literal {
			continue
		}
		if name, ok := strings.CutPrefix(piece.name, contextPrefix); ok {
			if !slices.Contains(contextNames[:], name) {
				p.report(diag.Error, CodePlaceholderUnknown, n, fmt.Sprintf("%s names no context", piece),
					"there are context.cwd, context.file, context.url, context.selection and context.clipboard")
			}
			continue
		}
		if !in.knows(piece.name) {
			what, hint := "property of the input schema", "declare the property"
			if p.toolPack {
				what, hint = "parameter", "declare the parameter"
			}
			if slices.Contains(contextNames[:], piece.name) {
				hint += fmt.Sprintf(", or write {{context.%s}} for what the user's side knows", piece.name)
			} else {
				hint += ", or write {{{{ for a literal {{"
			}
			p.report(diag.Error, CodePlaceholderUnknown, n, fmt.Sprintf("%s names no %s", piece, what), hint)
		}
	}
}

// String returns the placeholder as it is written, for messages.
func (p piece) String() string {
	switch p.form {
	case literal:
		return p.extra
	case spread:
		return "{{" + p.name + "...}}"
	case fallback, option:
		return "{{" + p.name + ":" + p.extra + "}}"
	default:
		return "{{" + p.name + "}}"
	}
}

// joined parses a template for a place that takes one text.
func (p *parser) joined(n *node, in *inputSchema) Arg {
	a, ok := p.template(n)
	if !ok {
		return Arg{}
	}
	p.known(a, n, in)
	for _, piece := range a.pieces {
		if piece.form == spread || piece.form == option {
			p.report(diag.Error, CodePlaceholderInvalid, n, fmt.Sprintf("%s makes arguments, and here is no place for several", piece), fmt.Sprintf("write {{%s}}", piece.name))
		}
	}
	return a
}

func (p *parser) env(m member, in *inputSchema) Arg {
	if !validEnvName(m.key) {
		p.report(diag.Error, CodeEnvName, m.value, fmt.Sprintf("%+q is not the name of an environment variable", clip(m.key)), "use letters, digits and _")
	} else if rule := envForbidden(m.key); rule != "" {
		p.report(diag.Error, CodeEnvForbidden, m.value, fmt.Sprintf("a pack cannot set %q (%s)", clip(m.key), rule),
			"remove it; a user can grant variables to a tool in their own configuration")
	}
	return p.joined(m.value, in)
}

func (p *parser) cwd(n *node, in *inputSchema) {
	a := p.joined(n, in)
	if lit, ok := a.Literal(); ok && a.source != "" && lit != CwdWorkspace && lit != CwdPackRoot && lit != CwdProject {
		p.report(diag.Error, CodeCwdInvalid, n, fmt.Sprintf("cwd %+q is not a folder that tools run in", clip(lit)), "write workspace, pack_root or project")
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

// code reports placeholders in the text of a program for an interpreter: there
// a value is no longer one argument that nothing looks into. It finds the
// interpreter also behind env, nice and their like.
func (p *parser) code(c *Command, nodes []*node) {
	words := []string{c.Program}
	placeholder := make([]bool, 1, len(c.Args)+1) // :: of the word
	for _, a := range c.Args {
		lit, ok := a.Literal()
		words = append(words, lit)
		placeholder = append(placeholder, !ok)
	}
	// From the last word to the first, where the next switch of each kind of
	// interpreter and the next placeholder are.
	after := make([]int, len(interpreters))
	codeAt := 0 // the first word with a placeholder in code, 0 while there is none
	var of int  // the interpreter it is for
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
		p.report(diag.Error, CodePlaceholderInShell, nodes[codeAt-1], "a placeholder in shell code, where a value could do anything",
			`pass the value as an argument of the code: ["-c", "echo \"$1\"", "sh", "{{x}}"]`)
	default:
		p.report(diag.Warning, CodePlaceholderInCode, nodes[codeAt-1], "a placeholder in program text, where a value could do anything",
			"pass the value as an argument of the program")
	}
}
