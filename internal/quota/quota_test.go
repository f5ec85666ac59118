package quota

import (
	"fmt"
	"math"
	"testing"
)

func TestOver(t *testing.T) {
	ada := Use{Person: "ada", Groups: []string{"sre", "staff"}, Amount: 2}
	bob := Use{Person: "bob", Groups: []string{"sre"}, Amount: 2}
	eve := Use{Person: "eve", Groups: []string{"nobody's"}, Amount: 2}
	for _, test := range []struct {
		name   string
		limits Limits
		now    []Use
		use    Use
		want   string // who is over, with what they use and may use; "": nobody
	}{
		{"no limits", Limits{}, []Use{ada, ada, ada}, ada, ""},
		{"as much as a person may", Limits{Each: 4}, []Use{ada}, ada, ""},
		{"more than a person may", Limits{Each: 5}, []Use{ada, ada}, ada, "this person 4/5"},
		{"another person", Limits{Each: 5}, []Use{ada, ada}, bob, ""},
		{"more than a group may", Limits{Each: 9, Group: map[string]int64{"sre": 5}}, []Use{ada, bob}, ada, `the group "sre" 4/5`},
		{"more than the second group may", Limits{Group: map[string]int64{"staff": 3, "sre": 9}}, []Use{ada}, ada, `the group "staff" 2/3`},
		{"somebody outside the group", Limits{Group: map[string]int64{"sre": 1}}, []Use{ada, bob}, eve, ""},
		{"a group that nobody is in", Limits{Group: map[string]int64{"ghosts": 1}}, []Use{ada, bob}, bob, ""},
		{"a group named twice counts once", Limits{Group: map[string]int64{"sre": 4}}, []Use{{Person: "ada", Groups: []string{"sre", "sre"}, Amount: 2}}, bob, ""},
		{"nothing is allowed to a group", Limits{Group: map[string]int64{"sre": 0}}, nil, bob, `the group "sre" 0/0`},
		{"a limit below nothing", Limits{Each: -1}, nil, bob, "this person 0/-1"},
		{"an amount that would overflow", Limits{Each: 5}, []Use{ada}, Use{Person: "ada", Amount: math.MaxInt64}, "this person 2/5"},
	} {
		tally := New(test.limits)
		for _, u := range test.now {
			tally.Add(u)
		}
		got := ""
		if e := tally.Over(test.use); e != nil {
			got = e.Who() + fmt.Sprintf(" %d/%d", e.Used, e.Most)
		}
		if got != test.want {
			t.Errorf("%s: Over = %q, want %q", test.name, got, test.want)
		}
		for _, u := range test.now {
			tally.Remove(u)
		}
		if len(tally.person) != 0 || len(tally.group) != 0 {
			t.Errorf("%s: after everything ended, %v and %v are counted", test.name, tally.person, tally.group)
		}
	}
}
