package grants

import (
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
)

// What was ended is about the answers of a person, of a pack, or all, and about those
// that came shortly after, since clocks differ.
func TestEnded(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	const ada = "ada@example.com 3f9a1c2d5b60e4a781c0ffd2"
	own := Grant{Person: ada, Pack: "notes", Since: at.Add(-time.Hour)}
	forGrace := Grant{Person: "grace", By: &approvers.Person{Name: ada}, Pack: "Notes", Since: at}
	later := Grant{Person: ada, Pack: "notes", Since: at.Add(time.Hour)}
	soon := Grant{Person: ada, Pack: "notes", Since: at.Add(time.Minute)}
	named := Grant{Person: "Ada Lovelace 3f9a1c2d5b60e4a781c0ffd2", By: &approvers.Person{Name: "Ada King 3f9a1c2d5b60e4a781c0ffd2"}, Since: at}
	for ended, want := range map[Ended]bool{
		{Person: "Ada Lovelace"}: true, {Person: "Ada King"}: true, {Person: "Ada"}: false, {Person: ada}: true, {By: ada}: true, {By: "Ada Lovelace"}: false, {By: "Ada King"}: true, {Person: "ada lovelace"}: true, {By: "ADA KING"}: true,
		{Person: "Ada Lovelace 3f9a1c2d5b60e4a781c0ffd3"}: false, {Person: "3f9a1c2d5b60e4a781c0ffd2"}: false,
	} {
		if ended.Concerns(named) != want {
			t.Errorf("Concerns() = %t for %+v, want %t", !want, ended, want)
		}
	}
	for name, test := range map[string]struct {
		ended Ended
		want  [4]bool // of the grants above
	}{
		"everything":         {Ended{}, [4]bool{true, true, false, true}},
		"of a person":        {Ended{Person: ada}, [4]bool{true, true, false, true}},
		"of an address":      {Ended{Person: "ada@example.com"}, [4]bool{true, true, false, true}},
		"for another":        {Ended{Person: "grace"}, [4]bool{false, true, false, false}},
		"for nobody here":    {Ended{Person: "ada"}, [4]bool{}},
		"given by a person":  {Ended{By: ada}, [4]bool{true, true, false, true}},
		"given by another":   {Ended{By: "grace"}, [4]bool{}},
		"of a pack":          {Ended{Pack: "notes"}, [4]bool{true, true, false, true}},
		"of another pack":    {Ended{Pack: "other"}, [4]bool{}},
		"of a person's pack": {Ended{Person: "grace", Pack: "notes"}, [4]bool{false, true, false, false}},
	} {
		test.ended.At = at
		var got [4]bool
		for i, g := range []Grant{own, forGrace, later, soon} {
			got[i] = test.ended.Covers(g)
		}
		if got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
