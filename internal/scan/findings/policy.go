package findings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/near"
)

// A Policy holds a person's decisions about findings. The zero value changes nothing
// and never fails a scan. It is read from a file that the person names, never from a
// pack.
type Policy struct {
	FailOn    Severity // a finding of this severity or above fails the scan; see HasFailOn
	HasFailOn bool
	Rules     map[string]Severity // :: id of a rule → its severity, wherever it is found
	Off       map[string]bool     // :: id of a rule that is not reported
	Accept    []Acceptance
}

// An Acceptance is one finding that a person has examined and accepts as long as not a
// byte of it changes.
type Acceptance struct {
	Hash   string
	Reason string
}

// maxPolicy is how large a policy file may be, in bytes.
const maxPolicy = 1 << 20

// ParsePolicy reads a policy file. Errors call it name, and list every problem with its
// line.
func ParsePolicy(name string, src []byte) (*Policy, error) {
	r := &policyReader{name: name, policy: &Policy{Rules: make(map[string]Severity), Off: make(map[string]bool)}}
	if len(src) > maxPolicy {
		return nil, fmt.Errorf("%s: is larger than %d bytes", name, maxPolicy)
	}
	dec := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(src, []byte("\ufeff"))))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return r.policy, nil
	case err != nil:
		return nil, fmt.Errorf("%s: is not YAML: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		r.problem(&second, "a second document begins here; one file is one document")
	}
	r.root(doc.Content[0])
	if len(r.problems) > 0 {
		return nil, errors.New(strings.Join(r.problems, "\n"))
	}
	return r.policy, nil
}

type policyReader struct {
	name     string
	policy   *Policy
	problems []string
}

func (r *policyReader) problem(n *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("%s:%d: %s", r.name, max(n.Line, 1), fmt.Sprintf(format, args...)))
}

// mapping calls each for the entries of a mapping. Aliases are not followed.
func (r *policyReader) mapping(n *yaml.Node, what string, each func(k, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.problem(n, "%s is not a mapping of keys to values", what)
		return
	}
	lines := make(map[string]int) // :: key → its line
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if line, twice := lines[k.Value]; twice || k.Kind != yaml.ScalarNode {
			r.problem(k, "%q occurs twice, or is not a word; the first is in line %d", k.Value, line)
			continue
		}
		lines[k.Value] = k.Line
		each(k, n.Content[i+1])
	}
}

// list calls each for the elements of a list. A missing value is an empty list.
func (r *policyReader) list(n *yaml.Node, what string, each func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.problem(n, "%s is not a list", what)
		return
	}
	for _, item := range n.Content {
		each(item)
	}
}

func (r *policyReader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || strings.TrimSpace(n.Value) == "" {
		r.problem(n, "%s is not a text", what)
		return ""
	}
	return n.Value
}

func (r *policyReader) unknown(k *yaml.Node, known ...string) {
	r.problem(k, "there is no key %q%s", k.Value, mayMean(k.Value, known))
}

// mayMean returns a hint with the word that may have been meant.
func mayMean(word string, known []string) string {
	if close := near.Names(word, known, 1); len(close) > 0 {
		return fmt.Sprintf("; did you mean %q?", close[0])
	}
	if len(known) <= 6 {
		return "; there are " + strings.Join(known, ", ")
	}
	return ""
}

func (r *policyReader) root(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	r.mapping(n, "the policy", func(k, v *yaml.Node) {
		switch k.Value {
		case "fail_on":
			s, ok := ParseSeverity(v.Value)
			if !ok || s == Info || v.Kind != yaml.ScalarNode {
				r.problem(v, "fail_on is %q; want critical, high, medium or low", v.Value)
			}
			r.policy.FailOn, r.policy.HasFailOn = s, true
		case "rules":
			if v.ShortTag() == "!!null" {
				return
			}
			r.mapping(v, "rules", r.rule)
		case "accept":
			r.list(v, "accept", r.accept)
		default:
			r.unknown(k, "fail_on", "rules", "accept")
		}
	})
}

func (r *policyReader) rule(k, v *yaml.Node) {
	var ids []string
	for _, rule := range Rules() {
		ids = append(ids, rule.ID)
	}
	if !slices.Contains(ids, k.Value) {
		r.problem(k, "there is no rule %q%s", k.Value, mayMean(k.Value, ids))
		return
	}
	severity, ok := ParseSeverity(v.Value)
	switch {
	// "off" is a boolean in YAML 1.1, and a string in 1.2.
	case v.Kind == yaml.ScalarNode && (v.Value == "off" || v.ShortTag() == "!!bool" && v.Value == "false"):
		r.policy.Off[k.Value] = true
	case v.Kind == yaml.ScalarNode && ok:
		r.policy.Rules[k.Value] = severity
	default:
		r.problem(v, "%s is %q; want off, critical, high, medium, low or info", k.Value, v.Value)
	}
}

// isHash matches the hash of a finding.
var isHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`) })

func (r *policyReader) accept(n *yaml.Node) {
	var a Acceptance
	before := len(r.problems)
	r.mapping(n, "an accepted finding", func(k, v *yaml.Node) {
		switch k.Value {
		case "hash":
			if a.Hash = r.text(v, "hash"); a.Hash != "" && !isHash().MatchString(a.Hash) {
				r.problem(v, "hash is %s; want sha256: and 64 digits, as the scan prints it", strconv.Quote(cut(a.Hash, 80)))
			}
		case "reason":
			a.Reason = r.text(v, "reason")
		default:
			r.unknown(k, "hash", "reason")
		}
	})
	if len(r.problems) > before {
		return
	}
	switch {
	case a.Hash == "":
		r.problem(n, "an accepted finding has no hash")
	case a.Reason == "":
		r.problem(n, "an accepted finding has no reason; say why it is all right")
	case slices.ContainsFunc(r.policy.Accept, func(b Acceptance) bool { return b.Hash == a.Hash }):
		r.problem(n, "this hash is accepted twice")
	default:
		r.policy.Accept = append(r.policy.Accept, a)
	}
}

// Apply changes reports as the policy says: it removes rules that are off, sets severities,
// and marks accepted findings. It returns the acceptances that no finding needed: their
// subject is gone or has changed.
func (p *Policy) Apply(reports []Report) (unused []Acceptance) {
	used := make(map[string]bool)
	reasons := make(map[string]string)
	for _, a := range p.Accept {
		reasons[a.Hash] = a.Reason
	}
	for i := range reports {
		r := &reports[i]
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return p.Off[f.Rule] })
		for k := range r.Findings {
			f := &r.Findings[k]
			if s, ok := p.Rules[f.Rule]; ok {
				f.Severity = s
			}
			if reason, ok := reasons[f.Hash]; ok {
				f.Accepted = reason
				used[f.Hash] = true
			}
		}
		sortFindings(r.Findings)
	}
	for _, a := range p.Accept {
		if !used[a.Hash] {
			unused = append(unused, a)
		}
	}
	return unused
}

// Fails returns how many findings that were not accepted have at least the severity
// on.
func Fails(reports []Report, on Severity) (n int) {
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.Accepted == "" && f.Severity.AtLeast(on) {
				n++
			}
		}
	}
	return n
}
