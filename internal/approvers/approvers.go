// Package approvers decides who may answer the questions about a call: which persons
// and groups the configuration names for it, and whether the person who asks may be one
// of them.
//
// It knows nothing of channels and asks nobody; package gate holds every answer against
// it. Of all rules that match a call, each must name the person, so that another rule
// can take somebody out and never let somebody in.
package approvers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// A Person is somebody who asks or answers. The zero Person is nobody, whom no rule
// names.
type Person struct {
	Name   string   `json:"name,omitempty"`   // as in the audit log; empty for nobody in particular
	Groups []string `json:"groups,omitempty"` // as the person's token says
	// Operator says that this is the user who runs the server: at the server's own page
	// and terminal, or in the client that started it.
	Operator bool `json:"operator,omitempty"`
}

// subjectDigits is how much of the key of an identity provider's person their name
// shows. The name decides whose an answer is, and who may choose their subject must not
// find one with the same digits.
const subjectDigits = 24

// Provided returns the name of an identity provider's person: what they are called, and
// the beginning of their key, which is a digest in hexadecimal digits.
func Provided(called, key string) string { return called + " " + key[:subjectDigits] }

// IsProvided reports whether a name has the form of [Provided].
func IsProvided(name string) bool {
	space := len(name) - subjectDigits - 1
	return space > 0 && name[space] == ' ' && strings.Trim(name[space+1:], "0123456789abcdef") == ""
}

// String returns the name for people and the log; empty for nobody in particular.
func (p Person) String() string {
	if p.Operator {
		return string(Operator)
	}
	return p.Name
}

// is reports whether both are certainly the same.
func (p Person) is(other Person) bool {
	return p.Operator && other.Operator || p.Name != "" && p.Name == other.Name
}

// A Kind is what a [Who] names.
type Kind string

// The kinds.
const (
	Named    Kind = "person"
	Group    Kind = "group"
	Asker    Kind = "asker"    // the person whose call it is
	Operator Kind = "operator" // see [Person].Operator
)

// A Who is one entry of a rule's list of people.
type Who struct {
	Kind Kind
	Name string // of a person or a group
}

// ParseWho reads an entry: "asker", "operator", "group:NAME", "person:NAME", or a
// person's name. A name with a colon has to be written behind "person:".
func ParseWho(s string) (Who, error) {
	kind, name, split := strings.Cut(s, ":")
	switch {
	case s == string(Asker), s == string(Operator):
		return Who{Kind: Kind(s)}, nil
	case !split:
		kind, name = string(Named), s
	case kind != string(Group) && kind != string(Named):
		return Who{}, errors.New("it is none of asker, operator, group:NAME, person:NAME and the name of a person")
	}
	if name == "" || name != strings.TrimSpace(name) || len(name) > 256 {
		return Who{}, errors.New("it names nobody")
	}
	return Who{Kind: Kind(kind), Name: name}, nil
}

// String returns the entry as people read it.
func (w Who) String() string {
	switch w.Kind {
	case Asker:
		return "the person who asks"
	case Operator:
		return "the operator of the server"
	case Group:
		return "group " + w.Name
	}
	return w.Name
}

// names reports whether the entry names a person, for a call of asker's.
func (w Who) names(p, asker Person) bool {
	switch w.Kind {
	case Named:
		return w.Name == p.Name
	case Group:
		return slices.Contains(p.Groups, w.Name)
	case Asker:
		return p.is(asker)
	case Operator:
		return p.Operator
	}
	return false
}

// Names reports whether one of the entries names a person, no matter who asks.
func Names(all []Who, p Person) bool {
	return slices.ContainsFunc(all, func(w Who) bool { return w.Kind != Asker && w.names(p, Person{}) })
}

// A Rule says who may answer about some calls.
type Rule struct {
	Packs   []string // ids, or patterns of ids as in package rules; none: every pack
	Kinds   []string // of calls; none: every kind
	Who     []Who    // at least one
	NotSelf bool     // the person who asks may not answer
	Where   string   // it is written, as in "config.yaml:12"
}

// about reports whether the rule is about a call.
func (r *Rule) about(pack, kind string) bool {
	ofPack := len(r.Packs) == 0 || slices.ContainsFunc(r.Packs, func(p string) bool { return rules.Matches(p, pack) })
	return ofPack && (len(r.Kinds) == 0 || slices.Contains(r.Kinds, kind))
}

// names reports whether the rule lets a person answer a call of asker's. Somebody
// without a name may be the one who asks, so NotSelf leaves them out; and anybody may be
// who asks without a name.
func (r *Rule) names(p, asker Person) bool {
	if r.NotSelf && (p.is(asker) || p.String() == "" || asker.String() == "") {
		return false
	}
	return slices.ContainsFunc(r.Who, func(w Who) bool { return w.names(p, asker) })
}

// A Need is what the rules about one call ask for. The zero Need is that of a call
// that no rule is about.
type Need struct{ rules []*Rule }

// For returns what the rules ask for about a call.
func For(all []Rule, pack, kind string) (n Need) {
	for i := range all {
		if all[i].about(pack, kind) {
			n.rules = append(n.rules, &all[i])
		}
	}
	return n
}

// Any reports whether a rule is about the call.
func (n Need) Any() bool { return len(n.rules) > 0 }

// May reports whether a person may allow a call of asker's. Where no rule is about the
// call, these are the person who asks and the operator.
func (n Need) May(p, asker Person) bool {
	if !n.Any() {
		return p.Operator || p.is(asker)
	}
	return !slices.ContainsFunc(n.rules, func(r *Rule) bool { return !r.names(p, asker) })
}

// Others reports whether a person who is neither asker nor the operator could satisfy
// every rule: somebody whom each of them names, by name or by some group.
func (n Need) Others(asker Person) bool {
	if !n.Any() || asker.String() == "" && slices.ContainsFunc(n.rules, func(r *Rule) bool { return r.NotSelf }) {
		return false
	}
	byGroup := func(r *Rule) bool { return slices.ContainsFunc(r.Who, func(w Who) bool { return w.Kind == Group }) }
	if !slices.ContainsFunc(n.rules, func(r *Rule) bool { return !byGroup(r) }) {
		return true
	}
	for _, r := range n.rules {
		for _, w := range r.Who {
			p := Person{Name: w.Name}
			if w.Kind != Named || p.is(asker) {
				continue
			}
			if !slices.ContainsFunc(n.rules, func(other *Rule) bool { return !byGroup(other) && !other.names(p, asker) }) {
				return true
			}
		}
	}
	return false
}

// String says who may answer, for people: "group sre or grace, not the person who asks
// (config.yaml:12)". It is empty if no rule is about the call.
func (n Need) String() string {
	var all []string
	for _, r := range n.rules {
		var who []string
		for _, w := range r.Who {
			who = append(who, w.String())
		}
		text := strings.Join(who, " or ")
		if r.NotSelf {
			text += ", not the person who asks"
		}
		all = append(all, fmt.Sprintf("%s (%s)", text, r.Where))
	}
	return strings.Join(all, "; and also ")
}
