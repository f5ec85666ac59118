package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// maxDepth is how deeply arguments may be nested.
const maxDepth = 100

// maxProblems is how many problems of one file are reported.
const maxProblems = 50

// parse reads one file of cases. A case with an error is left out.
func parse(file string, src []byte) ([]Case, []diag.Diagnostic) {
	r := &reader{file: file}
	if !utf8.Valid(src) {
		r.report(CodeYAML, nil, "the file is not UTF-8", "save it as UTF-8")
		return nil, r.problems
	}
	d := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(src, []byte("\ufeff"))))
	var doc, second yaml.Node
	err := d.Decode(&doc)
	if err == nil {
		if more := d.Decode(&second); more == nil {
			r.report(CodeYAML, &second, "a second document begins here", "put all cases into one list")
			return nil, r.problems
		} else if !errors.Is(more, io.EOF) {
			err = more
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		r.report(CodeValue, nil, "the file has no cases", example)
		return nil, r.problems
	case err != nil:
		r.syntax(err)
		return nil, r.problems
	}
	var cases []Case
	names := make(map[string]bool)
	r.mapping(doc.Content[0], "the file", map[string]func(*yaml.Node){"cases": func(n *yaml.Node) {
		if !r.is(n, yaml.SequenceNode, "cases", "a list of cases") {
			return
		}
		for i, item := range n.Content {
			before := len(r.problems)
			c := r.oneCase(item)
			if c.Name == "" {
				c.Name = fmt.Sprintf("%s, case %d", c.Tool, i+1)
			}
			if names[c.Name] {
				r.report(CodeValue, item, fmt.Sprintf("the name %q occurs twice", clip(c.Name)), "give each case a name of its own")
			}
			names[c.Name] = true
			if len(r.problems) == before {
				cases = append(cases, c)
			}
			if len(r.problems) > maxProblems {
				return
			}
		}
	}}, "cases")
	if len(r.problems) > maxProblems {
		r.problems = append(r.problems[:maxProblems], diag.Diagnostic{
			Code: CodeValue, Severity: diag.Error, File: file, Message: "more problems of this file are not shown", Hint: "fix these first",
		})
	}
	if len(cases) == 0 && len(r.problems) == 0 {
		r.report(CodeValue, nil, "the file has no cases", example)
	}
	return cases, r.problems
}

const example = "begin with:  cases: [{tool: NAME, output: {contains: TEXT}}]"

type reader struct {
	file     string
	problems []diag.Diagnostic
}

func (r *reader) report(code string, n *yaml.Node, message, hint string) {
	d := diag.Diagnostic{Code: code, Severity: diag.Error, File: r.file, Message: message, Hint: hint}
	if n != nil {
		d.Line, d.Column = n.Line, n.Column
	}
	r.problems = append(r.problems, d)
}

// syntax reports an error of the YAML parser, such as "yaml: line 3: did not find …".
func (r *reader) syntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if digits, rest, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				line, message = n, rest
			}
		}
	}
	r.problems = append(r.problems, diag.Diagnostic{
		Code: CodeYAML, Severity: diag.Error, File: r.file, Line: line, Message: fmt.Sprintf("it is not YAML: %q", message), Hint: "put texts with special characters in quotes",
	})
}

// is reports whether a node has this kind. If not, it adds a diagnostic.
func (r *reader) is(n *yaml.Node, kind yaml.Kind, key, what string) bool {
	if n.Kind == yaml.AliasNode {
		r.report(CodeYAML, n, "aliases are not read", "write the value out")
		return false
	}
	if n.Kind != kind {
		r.report(CodeValue, n, fmt.Sprintf("%s is not %s", key, what), "see docs/how-to/test-a-pack.md for an example")
		return false
	}
	return true
}

// mapping passes the values of a mapping to the readers of its keys. Unknown,
// duplicate and missing required keys are errors.
func (r *reader) mapping(n *yaml.Node, what string, keys map[string]func(*yaml.Node), needed ...string) {
	if !r.is(n, yaml.MappingNode, what, "a mapping of keys to values") {
		return
	}
	var known []string
	for k := range keys {
		known = append(known, k)
	}
	slices.Sort(known)
	seen := make(map[string]bool)
	misspelt := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		read := keys[k.Value]
		switch {
		case k.Kind != yaml.ScalarNode || read == nil:
			hint := "it has: " + strings.Join(known, ", ")
			if meant := near.Names(k.Value, known, 1); len(meant) > 0 {
				hint, misspelt = fmt.Sprintf("did you mean %q?", meant[0]), true
			}
			r.report(CodeKeyUnknown, k, fmt.Sprintf("%s has no key %q", what, clip(k.Value)), hint)
		case seen[k.Value]:
			r.report(CodeValue, k, fmt.Sprintf("the key %q occurs twice", clip(k.Value)), "remove one of them")
		default:
			seen[k.Value] = true
			read(v)
		}
		if len(r.problems) > maxProblems {
			return
		}
	}
	for _, k := range needed {
		if !seen[k] && !misspelt { // a misspelt key may be the missing one
			r.report(CodeValue, n, fmt.Sprintf("%s has no %q", what, k), "add it")
		}
	}
}

// text reads a text. Numbers and other scalars are read as written.
func (r *reader) text(key string, to func(string)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if r.is(n, yaml.ScalarNode, key, "a text") {
			if n.ShortTag() == "!!null" || n.ShortTag() == "!!binary" {
				r.report(CodeValue, n, key+" is not a text", "write a text, in quotes if it may look like something else")
				return
			}
			to(n.Value)
		}
	}
}

func (r *reader) oneCase(n *yaml.Node) Case {
	c := Case{File: r.file, Line: n.Line, Arguments: json.RawMessage("{}")}
	r.mapping(n, "a case", map[string]func(*yaml.Node){
		"name": r.text("name", func(s string) { c.Name = s }),
		"tool": r.text("tool", func(s string) { c.Tool = s }),
		"arguments": func(n *yaml.Node) {
			if !r.is(n, yaml.MappingNode, "arguments", "a mapping of names to values") {
				return
			}
			value, bad, problem := jsonOf(n, 0)
			if problem != "" {
				r.report(CodeValue, bad, "arguments: "+problem, "write what JSON can say")
				return
			}
			raw, err := json.Marshal(value)
			if err != nil {
				r.report(CodeValue, n, "arguments cannot be written as JSON", "write what JSON can say")
				return
			}
			c.Arguments = raw
		},
		"context": func(n *yaml.Node) {
			c.Context = make(map[string]string)
			if !r.is(n, yaml.MappingNode, "context", "a mapping of names to texts") {
				return
			}
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := n.Content[i]
				if _, twice := c.Context[key.Value]; twice {
					r.report(CodeValue, key, fmt.Sprintf("the key %q occurs twice", clip(key.Value)), "remove one of them")
				}
				r.text("a value of context", func(s string) { c.Context[key.Value] = s })(n.Content[i+1])
			}
		},
		"exit": func(n *yaml.Node) {
			var code int
			if !r.is(n, yaml.ScalarNode, "exit", "a number") {
				return
			}
			if n.ShortTag() != "!!int" || n.Decode(&code) != nil || code < 0 || code > math.MaxUint8 {
				r.report(CodeValue, n, "exit is not a number from 0 to 255", "write the exit status that the program should end with")
			}
			c.Exit = code
		},
		"output": func(n *yaml.Node) { c.Output = r.check(n, "output") },
		"stderr": func(n *yaml.Node) { c.Stderr = r.check(n, "stderr") },
		"files":  func(n *yaml.Node) { c.Files = r.files(n) },
	}, "tool")
	return c
}

func (r *reader) check(n *yaml.Node, what string) *Check {
	c := new(Check)
	before := len(r.problems)
	r.mapping(n, what, map[string]func(*yaml.Node){
		"equals": r.text("equals", func(s string) { c.Equals = &s }),
		"contains": func(n *yaml.Node) {
			add := func(s string) { c.Contains = append(c.Contains, s) }
			if n.Kind != yaml.SequenceNode {
				r.text("contains", add)(n)
				return
			}
			for _, item := range n.Content {
				r.text("an item of contains", add)(item)
			}
		},
		"matches": r.text("matches", func(s string) {
			expression, err := regexp.Compile(s)
			if err != nil {
				r.report(CodeValue, n, "matches is not a regular expression: "+strconv.Quote(err.Error()), "the syntax is that of Go (RE2)")
			}
			c.Matches = expression
		}),
	})
	if len(r.problems) == before && c.Equals == nil && len(c.Contains) == 0 && c.Matches == nil && what != fileWhat {
		r.report(CodeValue, n, what+" checks nothing", "write equals, contains or matches")
	}
	return c
}

// fileWhat names the check of a file in messages; such a check may be empty.
const fileWhat = "a file"

func (r *reader) files(n *yaml.Node) []Files {
	if !r.is(n, yaml.MappingNode, "files", "a mapping of paths to checks") {
		return nil
	}
	var all []Files
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		name, err := packfs.Clean(k.Value)
		if err != nil || name == "." || k.Kind != yaml.ScalarNode {
			r.report(CodeValue, k, fmt.Sprintf("the path %q does not stay in the workspace", clip(k.Value)), "write a path relative to the workspace, with slashes")
			continue
		}
		if slices.ContainsFunc(all, func(f Files) bool { return f.Path == name }) {
			r.report(CodeValue, k, fmt.Sprintf("the path %q occurs twice", clip(k.Value)), "remove one of them")
			continue
		}
		f := Files{Path: name}
		if v.ShortTag() != "!!null" {
			f.Check = *r.check(v, fileWhat)
		}
		all = append(all, f)
	}
	return all
}

// jsonOf returns a value in the form of encoding/json, or says what JSON cannot
// express, and where.
func jsonOf(n *yaml.Node, depth int) (value any, at *yaml.Node, problem string) {
	if depth > maxDepth {
		return nil, n, "they are nested too deeply"
	}
	switch n.Kind {
	case yaml.MappingNode:
		all := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
				return nil, k, "a key is not a text"
			}
			if _, twice := all[k.Value]; twice {
				return nil, k, fmt.Sprintf("the key %q occurs twice", clip(k.Value))
			}
			v, at, problem := jsonOf(n.Content[i+1], depth+1)
			if problem != "" {
				return nil, at, problem
			}
			all[k.Value] = v
		}
		return all, nil, ""
	case yaml.SequenceNode:
		all := []any{}
		for _, item := range n.Content {
			v, at, problem := jsonOf(item, depth+1)
			if problem != "" {
				return nil, at, problem
			}
			all = append(all, v)
		}
		return all, nil, ""
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil, n, "aliases are not read"
}

func scalar(n *yaml.Node) (value any, at *yaml.Node, problem string) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // a date is a text in JSON
		return n.Value, nil, ""
	case "!!null":
		return nil, nil, ""
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b, nil, ""
		}
	case "!!int":
		if i, ok := new(big.Int).SetString(n.Value, 0); ok {
			return json.Number(i.String()), nil, ""
		}
	case "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil, ""
		}
		var f float64
		if n.Decode(&f) == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil, ""
		}
	}
	return nil, n, fmt.Sprintf("%q is nothing that JSON has", clip(n.Value))
}

func matches(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}

// cause returns err without the path, since the diagnostic has it.
func cause(err error) string {
	if e, ok := errors.AsType[*packfs.PathError](err); ok {
		return e.Reason.Error()
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
