package scan

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/scan/argv"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// tool checks a declared tool: its command and the permissions it asks for. Its texts
// are checked with the file that declares it.
func (s *scanner) tool(t *tools.Tool, below string) {
	say := func(rule string, severity findings.Severity, quote string) {
		s.Add(findings.Hit{Rule: rule, Severity: severity, Path: below + t.File, Line: t.Line, Tool: t.Name, Quote: quote, Matched: t.Definition()})
	}
	if t.Policy.Network == tools.NetworkFull {
		say(ruleToolNetwork, info, "network: full")
	}
	if t.Policy.Network == tools.NetworkHosts {
		say(ruleToolNetwork, info, "network: "+t.Policy.Reach())
	}
	c := t.Command
	if c == nil {
		return
	}
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.String()
	}
	line := strings.Join(append([]string{c.Program}, args...), " ")
	if strings.ContainsFunc(c.Program, func(r rune) bool { return r >= 0x80 }) {
		say(ruleToolLookalike, high, fmt.Sprintf("%+q", c.Program))
	}
	if c.Cwd == tools.CwdProject && !t.Policy.ReadOnly {
		say(ruleToolProject, info, "cwd: project")
	} else if strings.HasPrefix(c.Cwd, "/") || strings.HasPrefix(c.Cwd, "~") {
		say(ruleToolOutside, medium, "cwd: "+c.Cwd)
	}
	program := argv.Program(c.Program)
	inner, own := argv.Started(program, args)
	if i := argv.CodeArgument(inner, args[own:]); i >= 0 {
		i += own
		if names := c.Args[i].Names(); len(names) > 0 {
			say(ruleToolInjection, high, line)
		} else {
			say(ruleToolCode, medium, line)
		}
		s.argv(t, below, args[i])
	}
	s.argv(t, below, line)
	switch program {
	case "sudo", "doas", "su", "pkexec", "runas", "chroot", "nsenter", "unshare":
		say(ruleToolRoot, high, line)
	}
	if argv.Downloads(inner, args[own:]) {
		say(ruleToolDownload, medium, line)
	}
	if t.Policy.DeclaresReadOnly && t.Policy.ReadOnly && argv.Changes(inner, args[own:]) {
		say(ruleToolReadOnly, high, line)
	}
	for _, word := range append([]string{c.Program}, args...) {
		if argv.LeadsOut(word, word == c.Program) {
			say(ruleToolOutside, medium, word)
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if argv.IsLoader(name) || redact.SensitiveName(name) {
			say(ruleToolLoader, high, name+"="+c.Env[name].String())
		}
	}
}

// refused reports problems of an invalid declaration. This program does not serve such
// a tool, but others do.
func (s *scanner) refused(d diag.Diagnostic, below string) {
	rule := ""
	switch d.Code {
	case tools.CodePlaceholderInShell:
		rule = ruleToolInjection
	case tools.CodeEnvForbidden:
		rule = ruleToolLoader
	default:
		return
	}
	// There is no valid tool to hash, so an acceptance covers the whole file.
	src, err := s.root.ReadAll(below+d.File, maxText)
	if err != nil {
		s.incomplete(below+d.File, "the file cannot be read: "+packfs.Cause(err))
		return
	}
	sum := sha256.Sum256(src)
	s.Add(findings.Hit{Rule: rule, Severity: high, Path: below + d.File, Line: d.Line, Quote: d.Message, Matched: append(sum[:], d.Pointer...)})
}

// argv looks for attacks in the command that a tool runs.
func (s *scanner) argv(t *tools.Tool, below, line string) {
	text := letters.Normal(line)
	u := &unit{zone: code, text: text, offsets: []int{0}, lines: []int{t.Line}, tool: t.Name}
	s.search.find(u, func(p *pattern, from, to int, severity findings.Severity) {
		if p.rule == "dynamic-exec" || p.rule == "as-root" || p.prompt || p.sign != noSign {
			return // the rules about tools cover this
		}
		s.Add(findings.Hit{Rule: p.rule, Severity: severity, Path: below + t.File, Line: t.Line, Tool: t.Name, Quote: line, Matched: t.Definition()})
	})
}

// loose checks the file of a tool that is itself a pack.
func (s *scanner) loose(dir *packfs.Dir, name string) {
	s.toolFiles[name] = true
	s.names++
	s.name(name, name, false)
	s.file(dir, name, name)
}

// keys checks the values of the frontmatter.
func (s *scanner) keys(f *file, doc *frontmatter.Document) {
	node := doc.Node()
	if wide := argv.WideTools(doc.AllowedTools); wide != "" {
		line := doc.KeyLine("allowed-tools")
		s.report(f, findings.Hit{Rule: ruleAllowedTools, Severity: low, Line: line, Quote: "allowed-tools: " + wide, Matched: []byte(doc.AllowedTools)})
	}
	if line := doc.KeyLine("hooks"); line > 0 {
		s.report(f, findings.Hit{Rule: ruleHooks, Severity: medium, Line: line, Quote: "hooks:"})
	}
	steps := 0
	var walk func(n *yaml.Node, top string)
	walk = func(n *yaml.Node, top string) {
		if steps++; steps > maxEntries {
			return
		}
		switch n.Kind {
		case yaml.ScalarNode:
			z := meta
			switch top {
			case "hooks":
				z = code
			case "allowed-tools", "allowedTools", "tools", "disallowed-tools":
				return // it names tools
			}
			var j joiner
			for i, line := range strings.Split(n.Value, "\n") {
				at := n.Line
				if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
					at += i + 1
				}
				j.add(letters.Normal(strings.TrimSpace(line)), at)
			}
			f.units = append(f.units, j.take(z))
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := top
				if key == "" {
					key = n.Content[i].Value
				}
				walk(n.Content[i+1], key)
			}
		default:
			for _, c := range n.Content {
				walk(c, top)
			}
		}
	}
	walk(node, "")
	if steps > maxEntries {
		s.incomplete(f.path, "the frontmatter has too many values")
	}
}

// json makes a unit of each text in a JSON value, after decoding escapes. It reports
// whether the file is JSON.
func (f *file) json(src []byte, z zone) bool {
	root, err := strictjson.Parse(src)
	if err != nil {
		return false
	}
	begins := []int{0}
	for i, c := range src {
		if c == '\n' {
			begins = append(begins, i+1)
		}
	}
	var walk func(n *strictjson.Node)
	walk = func(n *strictjson.Node) {
		switch n.Kind {
		case strictjson.Text:
			f.value(n.Text, sort.SearchInts(begins, n.Start+1), z)
		case strictjson.Object:
			for _, m := range n.Members {
				if strings.ContainsAny(m.Key, " \u200b") || len(m.Key) > 40 {
					f.value(m.Key, sort.SearchInts(begins, m.Start+1), z)
				}
				walk(m.Value)
			}
		case strictjson.List:
			for _, item := range n.Items {
				walk(item)
			}
		}
	}
	walk(root)
	return true
}

func (f *file) value(s string, line int, z zone) {
	text := letters.Normal(strings.Join(strings.Fields(s), " "))
	f.units = append(f.units, unit{zone: z, text: text, offsets: []int{0}, lines: []int{line}})
}
