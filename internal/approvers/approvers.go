// Package approvers decides who may answer the questions about a call: which persons
// and groups the configuration names for it, and whether the person who asks may be one
// of them.
//
// It knows nothing of channels and asks nobody; package gate checks every answer
// against it. Every rule that matches a call must name the person, so an additional
// rule can only exclude people, never admit them.
package approvers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// A Person is someone who asks or answers. No rule names the zero Person.
type Person struct {
	Name   string   `json:"name,omitempty"`   // as in the audit log; empty if unknown
	Groups []string `json:"groups,omitempty"` // from the person's token
	// Operator says that this is the user who runs the server: at the server's own page
	// and terminal, or in the client that started it.
	Operator bool `json:"operator,omitempty"`
}

// subjectDigits is how many digits of an identity provider's key a person's name shows.
// The name identifies the person who answers, so someone who can choose their subject
// must not be able to find one with the same digits.
const subjectDigits = 24

// Provided returns the name of a person known to an identity provider: the provider's
// name for them, and the beginning of their key, which is a digest in hexadecimal
// digits.
func Provided(called, key string) string { return called + " " + key[:subjectDigits] }

// IsProvided reports whether a name has the form of [Provided].
func IsProvided(name string) bool {
	space := len(name) - subjectDigits - 1
	return space > 0 && name[space] == ' ' && strings.Trim(name[space+1:], "0123456789abcdef") == ""
}

// String returns the name for people and the log, or "" if unknown.
func (p Person) String() string {
	if p.Operator {
		return string(Operator)
	}
	return p.Name
}

// Called returns the provider's name for a person whose name has the form of [Provided].
func Called(name string) string { return name[:len(name)-subjectDigits-1] }

// SameSubject reports whether two names are of one person of an identity provider, who
// may have been given another name there meanwhile.
func SameSubject(one, other string) bool {
	return IsProvided(one) && IsProvided(other) && one[len(one)-subjectDigits:] == other[len(other)-subjectDigits:]
}

// is reports whether both are certainly the same person.
func (p Person) is(other Person) bool {
	return p.Operator && other.Operator || p.Name != "" && (p.Name == other.Name || SameSubject(p.Name, other.Name))
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
// person's name. A name that contains a colon needs the prefix "person:".
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

// String returns the entry in the form that ParseWho reads.
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

// names reports whether the entry names a person, for a call made by asker.
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

// Names reports whether one of the entries names a person, no matter who made the call.
func Names(all []Who, p Person) bool {
	return slices.ContainsFunc(all, func(w Who) bool { return w.Kind != Asker && w.names(p, Person{}) })
}

// A Rule says who may answer about some calls.
type Rule struct {
	Packs   []string // ids, or patterns of ids as in package rules; none: every pack
	Kinds   []string // of calls; none: every kind
	Who     []Who    // at least one
	NotSelf bool     // the person who asks may not answer
	Where   string   // where the rule is written, such as "config.yaml:12"
}

// about reports whether the rule applies to a call.
func (r *Rule) about(pack, kind string) bool {
	ofPack := len(r.Packs) == 0 || slices.ContainsFunc(r.Packs, func(p string) bool { return rules.Matches(p, pack) })
	return ofPack && (len(r.Kinds) == 0 || slices.Contains(r.Kinds, kind))
}

// names reports whether the rule lets a person answer a call made by asker. With
// NotSelf, it returns false if either has no name, since they may be the same person.
func (r *Rule) names(p, asker Person) bool {
	if r.NotSelf && (p.is(asker) || p.String() == "" || asker.String() == "") {
		return false
	}
	return slices.ContainsFunc(r.Who, func(w Who) bool { return w.names(p, asker) })
}

// A Need combines the rules that apply to one call. The zero Need has no rules.
type Need struct{ rules []*Rule }

// For returns the Need of a call.
func For(all []Rule, pack, kind string) (n Need) {
	for i := range all {
		if all[i].about(pack, kind) {
			n.rules = append(n.rules, &all[i])
		}
	}
	return n
}

// Any reports whether any rule applies to the call.
func (n Need) Any() bool { return len(n.rules) > 0 }

// May reports whether a person may allow a call made by asker. If no rule applies to
// the call, only asker and the operator may.
func (n Need) May(p, asker Person) bool {
	if !n.Any() {
		return p.Operator || p.is(asker)
	}
	return !slices.ContainsFunc(n.rules, func(r *Rule) bool { return !r.names(p, asker) })
}

// Others reports whether a person other than asker and the operator could satisfy
// every rule: someone whom each of them names, by name or group.
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
// (config.yaml:12)". It is empty if no rule applies to the call.
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
