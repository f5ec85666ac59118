package grants

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
)

func TestLeave(t *testing.T) {
	const key, other = " 0123456789abcdef01234567", " fedcba9876543210fedcba98"
	at := time.Date(2026, 11, 28, 12, 0, 0, 500_000_000, time.UTC)
	now := approvers.Person{Name: "ada@example.com" + key, Groups: []string{"staff", "new"}}
	for _, test := range []struct {
		name   string
		by     *approvers.Person
		issued time.Time
		want   []string // groups of the answer
	}{
		{"an answer before the token", &approvers.Person{Name: now.Name, Groups: []string{"sre", "staff"}}, at.Add(time.Minute), []string{"staff"}},
		{"an answer in the second of the token", &approvers.Person{Name: now.Name, Groups: []string{"sre"}}, at.Truncate(time.Second), []string{}},
		{"an answer after the token", &approvers.Person{Name: now.Name, Groups: []string{"sre", "staff"}}, at.Add(-time.Minute), []string{"sre", "staff"}},
		{"a person with another name by now", &approvers.Person{Name: "a.l@example.com" + key, Groups: []string{"sre", "staff"}}, at.Add(time.Minute), []string{"staff"}},
		{"another person of that name", &approvers.Person{Name: "ada@example.com" + other, Groups: []string{"sre"}}, at.Add(time.Minute), []string{"sre"}},
		{"a person with a fixed token", &approvers.Person{Name: "ada@example.com", Groups: []string{"sre"}}, at.Add(time.Minute), []string{"sre"}},
		{"the operator", &approvers.Person{Operator: true}, at.Add(time.Minute), nil},
		{"nobody", nil, at.Add(time.Minute), nil},
	} {
		all := []Grant{{ID: "1", By: test.by, Since: at}}
		was := all[0].Clone()
		left, changed := Leave(all, now, test.issued)
		var got, before []string
		if left[0].By != nil {
			got, before = left[0].By.Groups, was.By.Groups
		}
		if diff := cmp.Diff(test.want, got); diff != "" || (changed == 1) != (len(got) < len(before)) {
			t.Errorf("%s: changed %d, groups (-want +got):\n%s", test.name, changed, diff)
		}
		if diff := cmp.Diff(was, all[0]); diff != "" {
			t.Errorf("%s: the answer that was passed changed (-was +is):\n%s", test.name, diff)
		}
		if _, again := Leave(left, now, test.issued); again != 0 {
			t.Errorf("%s: a second time, %d changed", test.name, again)
		}
	}
}
