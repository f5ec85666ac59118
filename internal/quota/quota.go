// Package quota says who would use more of something than they may: one person, or the
// people of a group together.
//
// A [Tally] counts what is used now. It is not safe for concurrent use: its owner has a
// lock of its own, and knows when a use ends.
package quota

import (
	"fmt"
	"maps"
	"slices"
)

// Limits are how much each person, and the people of each group together, may use at the
// same time. The zero value limits nobody.
type Limits struct {
	Each  int64            // of one person; 0: no limit
	Group map[string]int64 // :: group → of its people together; a group that is not in it has no limit
}

// Any reports whether there is a limit.
func (l Limits) Any() bool { return l.Each != 0 || len(l.Group) > 0 }

// A Use is an amount that one person uses.
type Use struct {
	Person any      // identifies the person; comparable
	Groups []string // that the person is in; a group may be named twice
	Amount int64    // at least 1
}

// A Tally counts uses. Make one with [New].
type Tally struct {
	limits Limits
	person map[any]int64    // :: person → their uses
	group  map[string]int64 // :: group that has a limit → the uses of its people
}

// New returns a Tally that counts nothing yet.
func New(l Limits) *Tally {
	l.Group = maps.Clone(l.Group)
	return &Tally{limits: l, person: make(map[any]int64), group: make(map[string]int64)}
}

// Over returns who would be over their limit with another use: the person first, then the
// groups in the order of the use. It returns nil if nobody would. It counts nothing.
func (t *Tally) Over(u Use) *Exceeded {
	if most := t.limits.Each; most != 0 && t.person[u.Person] > most-u.Amount {
		return &Exceeded{Used: t.person[u.Person], Most: most}
	}
	for _, g := range u.Groups {
		if most, limited := t.limits.Group[g]; limited && t.group[g] > most-u.Amount {
			return &Exceeded{Group: g, Used: t.group[g], Most: most}
		}
	}
	return nil
}

// Add counts a use.
func (t *Tally) Add(u Use) { t.count(u, u.Amount) }

// Remove ends a use that was added. Its fields must be the same.
func (t *Tally) Remove(u Use) { t.count(u, -u.Amount) }

func (t *Tally) count(u Use, n int64) {
	if t.person[u.Person] += n; t.person[u.Person] == 0 {
		delete(t.person, u.Person)
	}
	for i, g := range u.Groups {
		if _, limited := t.limits.Group[g]; !limited || slices.Contains(u.Groups[:i], g) {
			continue
		}
		if t.group[g] += n; t.group[g] == 0 {
			delete(t.group, g)
		}
	}
}

// Exceeded is the error that somebody would be over a limit.
type Exceeded struct {
	Group      string // the group whose people would be together; empty: the person
	Used, Most int64  // what they use now, and what they may use
}

func (e *Exceeded) Error() string {
	return fmt.Sprintf("%s would be over the limit of %d", e.Who(), e.Most)
}

// Who names them: this person, or the group "contractors".
func (e *Exceeded) Who() string {
	if e.Group == "" {
		return "this person"
	}
	return fmt.Sprintf("the group %q", e.Group)
}

// Setting names what limits them, as in http.runs_each and http.runs_group; of is "runs".
func (e *Exceeded) Setting(of string) string {
	if e.Group == "" {
		return "http." + of + "_each"
	}
	return "http." + of + "_group"
}
