package doctor

import (
	"bytes"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/drill"
)

// An attempt that was not refused but should be, one that should work but did not,
// and one with an unknown outcome are each reported, and make the result bad.
func TestAttackFails(t *testing.T) {
	row := drill.Row{Part: "Files", Does: "read a key"}
	for _, tt := range []struct {
		name    string
		attempt drill.Attempt
		ok      bool
		want    string
	}{
		{"refused", drill.Attempt{Expect: drill.Refused, Outcome: "EACCES"}, true, "refused   refused: EACCES "},
		{"not refused", drill.Attempt{Expect: drill.Refused, Outcome: "ok"}, false, "refused   NOT REFUSED "},
		{"lost", drill.Attempt{Expect: drill.Refused, Outcome: "no report", Detail: "it was killed"}, false, "refused   FAILED: it was killed "},
		{"open", drill.Attempt{Expect: drill.Open, Outcome: "ok"}, true, "open      done "},
		{"works", drill.Attempt{Expect: drill.Works, Outcome: "ok"}, true, "works     done "},
		{"does not work", drill.Attempt{Expect: drill.Works, Outcome: "EACCES"}, false, "works     FAILED: EACCES "},
		{"untested", drill.Attempt{Expect: drill.Refused, Outcome: "EPERM", Untested: true}, true, "refused   untested: EPERM "},
		{"absent", drill.Attempt{Expect: drill.Absent}, true, "This system has no such thing: read a key."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.attempt.Row = row
			other := drill.Attempt{Row: drill.Row{Part: "Files", Does: "list a folder"}, Expect: drill.Refused, Outcome: "EACCES"}
			a := attackedOf(&drill.Drill{Levels: []drill.Level{{Level: sandbox.LevelFull, Tries: []drill.Attempt{other, tt.attempt}}}})
			if a.OK != tt.ok {
				t.Errorf("OK = %v, want %v", a.OK, tt.ok)
			}
			var out bytes.Buffer
			if err := printAttack(&out, a); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("it lacks %q:\n%s", tt.want, &out)
			}
			if all := strings.Contains(out.String(), "At level full, everything that must be refused was refused"); all != tt.ok {
				t.Errorf("it says that all is well: %v, want %v:\n%s", all, tt.ok, &out)
			}
		})
	}
}

// If nothing was refused because nothing was attempted, that proves nothing.
func TestAttackOfNothing(t *testing.T) {
	for _, l := range []drill.Level{
		{Level: sandbox.LevelNone, Tries: []drill.Attempt{{Expect: drill.Refused, Outcome: "not there"}}},
		{Level: sandbox.LevelFull, Tries: []drill.Attempt{{Expect: drill.Absent}, {Expect: drill.Works, Outcome: "ok"}}},
	} {
		if a := attackedOf(&drill.Drill{Levels: []drill.Level{l}}); a.OK {
			t.Errorf("level %s: OK, want not", l.Level)
		}
	}
}
