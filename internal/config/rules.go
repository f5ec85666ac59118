package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// A selection is what a rule or an example says about calls, and where in the
// file it says so.
type selection struct {
	pack, tool, cwd  string
	kinds, argv, env []string
	stdin            bool
	at               map[string]*yaml.Node // :: "pack", "kind", "tool", "argv", "argv[2]" … → its value
}

// rules reads the user's rules and runs their examples: the server must not
// start with a rule that does not mean what its author thinks.
func (f *fileReader) rules(v *yaml.Node) {
	f.cfg.Rules = append(f.cfg.Rules, mappings(f, v, rulesKey, `deny: {argv: [git, push, "**"]}`, f.rule)...)
}

func (f *fileReader) rule(item *yaml.Node, path string) rules.Rule {
	r := rules.Rule{Where: fmt.Sprintf("%s:%d", filepath.Base(f.Name), item.Line)}
	effects := map[string]rules.Effect{}
	for _, e := range []rules.Effect{rules.Deny, rules.Ask, rules.Allow} {
		effects[e.String()] = e
	}
	var s selection
	var examples []func()
	var review *yaml.Node
	before := len(f.problems)
	f.Mapping(item, path, func(k, v *yaml.Node, path string) {
		name := node.Value(k).Value
		switch effect, ok := effects[name]; {
		case ok && r.Effect != 0:
			f.Problem(node.At(k), path, "is one too many: a rule is "+r.Effect.String()+" or "+name+"; make two of it")
		case ok:
			r.Effect = effect
			s = f.selection(v, path, true)
		case name == "match", name == "not_match":
			// Check them once the whole rule is known.
			examples = append(examples, func() { f.examples(r, v, path, name == "match") })
		case name == "review":
			review = v
			r.Review = f.reviewAll(v, path)
		default:
			f.Problem(node.At(k), path, "unknown key"+problem.DidYouMean(name, []string{"deny", "ask", "allow", "review", "match", "not_match"}, nil))
		}
	})
	switch {
	case len(f.problems) > before:
		return r
	case r.Effect == 0:
		f.Problem(node.At(item), path, "decides nothing; add deny, ask or allow")
		return r
	}
	r.Pack, r.Kinds, r.Tool, r.Argv, r.Env, r.Cwd, r.Stdin = s.pack, s.kinds, s.tool, s.argv, s.env, s.cwd, s.stdin
	err := r.Check()
	if e, ok := errors.AsType[*rules.Error](err); ok && e.At == "review" { // review is written beside the effect
		f.Problem(node.At(review), path+".review", e.Problem)
		return r
	}
	path += "." + r.Effect.String()
	if f.refused(err, s, path) {
		return r
	}
	for _, run := range examples {
		run()
	}
	return r
}

// refused reports an error of package rules at its place in the file.
func (f *fileReader) refused(err error, s selection, path string) bool {
	e, ok := errors.AsType[*rules.Error](err)
	switch {
	case err == nil:
		return false
	case !ok:
		f.Problem(node.At(s.at[""]), path, err.Error())
		return true
	}
	n := s.at[e.At]
	if n == nil {
		n = s.at[""]
	}
	if e.At != "" {
		path += "." + e.At
	}
	f.Problem(node.At(n), path, e.Problem)
	return true
}

// selection reads a mapping of selectors. In a rule they are patterns, and kinds
// may be a list; in an example they describe a call.
func (f *fileReader) selection(v *yaml.Node, path string, rule bool) selection {
	s := selection{at: map[string]*yaml.Node{"": v}}
	if node.IsNull(v) {
		f.Problem(node.At(v), path, "has no value; write {} for every call")
		return s
	}
	f.Mapping(v, path, func(k, v *yaml.Node, path string) {
		name := node.Value(k).Value
		s.at[name] = v
		switch {
		case name == "pack" && rule:
			f.pattern(v, path, `a pack's id or a pattern of ids, such as acme/deploy, "acme/*" or "*"`, &s.pack)
		case name == "pack":
			s.pack = f.exampleName(v, path)
		case name == "tool" && rule:
			f.pattern(v, path, `a tool's name, a pack and a name such as acme/deploy/open_ticket, or a pattern of these`, &s.tool)
		case name == "tool":
			s.tool = f.exampleName(v, path)
		case name == "kind" && rule && node.Value(v).Kind == yaml.SequenceNode:
			f.Words(v, path, &s.kinds, kind)
			if len(node.Value(v).Content) == 0 {
				f.Problem(node.At(v), path, "is an empty list; name at least one, or remove it")
			}
		case name == "kind":
			if text, ok := f.Text(v, path); ok {
				if _, wrong := kind(text); wrong != "" {
					f.Problem(node.At(v), path, "is "+problem.Show(text)+"; "+wrong)
				}
				s.kinds = []string{text}
			}
		case name == "argv":
			s.argv = f.argv(v, path, s.at)
		case name == "env":
			s.env = []string{}
			f.Words(v, path, &s.env, func(s string) (string, string) { return s, "" })
		case name == "cwd":
			s.cwd = f.cwd(v, path)
		case name == "stdin":
			if n := node.Value(v); n.Kind != yaml.ScalarNode || n.ShortTag() != node.TagBool || !strings.EqualFold(n.Value, "true") {
				f.Problem(node.At(v), path, "is "+node.What(v)+"; want true, or remove it")
			}
			s.stdin = true
		case name == "review" && rule:
			f.Problem(node.At(k), path, "is not about which calls the rule matches; write it beside allow, with the same indent")
		default:
			f.Problem(node.At(k), path, "unknown key"+problem.DidYouMean(name, []string{"pack", "kind", "tool", "argv", "env", "cwd", "stdin"}, nil))
		}
	})
	return s
}

func kind(s string) (word, wrong string) {
	return s, checkWord(s, []string{"open", "read", "enable", "run", "exec", "attach"})
}

func (f *fileReader) exampleName(v *yaml.Node, path string) string {
	s, ok := f.Text(v, path)
	if ok && strings.TrimSpace(s) == "" {
		f.Problem(node.At(v), path, "is empty; want a name")
	}
	return s
}

// cwd reads a folder, which may begin with "~/".
func (f *fileReader) cwd(v *yaml.Node, path string) string {
	s, ok := f.Text(v, path)
	if ok && strings.TrimSpace(s) == "" {
		f.Problem(node.At(v), path, "is empty; want workspace, pack_root, project or a folder")
	}
	return f.atHome(v, path, s)
}

// atHome returns text with a leading "~/" expanded to the user's home.
func (f *fileReader) atHome(v *yaml.Node, path, text string) string {
	rest, ok := strings.CutPrefix(text, "~/")
	if !ok {
		return text
	}
	if f.base.Home == "" {
		f.Problem(node.At(v), path, "the home folder cannot be found: write the path in full, or set "+places.HomeName(f.base.GOOS))
	}
	return f.base.Home + "/" + rest
}

// argv reads a program and its arguments. A number is taken as it is written;
// the program may begin with "~/".
func (f *fileReader) argv(v *yaml.Node, path string, nodes map[string]*yaml.Node) []string {
	if n := node.Value(v); n.Kind != yaml.SequenceNode {
		f.Problem(node.At(v), path, "is "+node.What(v)+`; want a list with the program and each of its arguments, such as [git, push, "**"]`)
		return nil
	}
	argv := []string{}
	for i, item := range f.Items(v, path) {
		element := fmt.Sprintf("argv[%d]", i)
		path := fmt.Sprintf("%s[%d]", path, i)
		nodes[element] = item
		n := node.Value(item)
		if n.Kind != yaml.ScalarNode || !slices.Contains([]string{node.TagString, node.TagInt, node.TagBool, "!!float", "!!timestamp"}, n.ShortTag()) {
			f.Problem(node.At(item), path, "is "+node.What(item)+"; want text, in quotes")
			continue
		}
		text := n.Value
		if i == 0 {
			text = f.atHome(item, path, text)
		}
		argv = append(argv, text)
	}
	return argv
}

// examples checks the file's examples of what r matches or does not match.
func (f *fileReader) examples(r rules.Rule, v *yaml.Node, path string, want bool) {
	for i, item := range f.Items(v, path) {
		path := fmt.Sprintf("%s[%d]", path, i)
		before := len(f.problems)
		e, s := f.example(item, path)
		if len(f.problems) > before || f.refused(e.Check(), s, path) {
			continue
		}
		switch matches, why := r.Try(e); {
		case want && !matches:
			f.Problem(node.At(item), path, "the rule does not match this call: "+why)
		case !want && matches:
			f.Problem(node.At(item), path, "the rule matches this call: it is "+r.String())
		}
	}
}

func (f *fileReader) example(item *yaml.Node, path string) (rules.Example, selection) {
	s := selection{at: map[string]*yaml.Node{"": item}}
	switch node.Value(item).Kind {
	case yaml.MappingNode:
		s = f.selection(item, path, false)
	case yaml.SequenceNode:
		s.argv = f.argv(item, path, s.at)
	default:
		f.Problem(node.At(item), path, "is "+node.What(item)+`; want an argv, such as [git, push], or a mapping of pack, kind, tool, argv, env, cwd and stdin`)
	}
	e := rules.Example{Pack: s.pack, Tool: s.tool, Argv: s.argv, Env: s.env, Cwd: s.cwd, Stdin: s.stdin}
	if len(s.kinds) > 0 {
		e.Kind = s.kinds[0]
	}
	return e, s
}
