package lines_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// What a program did is in the log under the id of its run.
func ExampleAuthor() {
	a := lines.Author{Server: "server-1"}
	c := call.Freeze(call.Request{Kind: call.KindRun, Method: "run", Pack: call.Pack{ID: "triage"}, Run: &call.Run{Tool: "report"}}, sandbox.LevelFull)
	e := a.RunEnd(c, "run-1", &sandbox.Result{ExitCode: 3, Cause: sandbox.CauseExit, Level: sandbox.LevelFull}, nil, nil)
	fmt.Println(e.Event, e.Pack, e.Tool, e.Run, *e.ExitCode)
	fmt.Println(a.Counted("ada", map[string]int{"denied": 2, "not_found": 5}).Reason)
	// Output:
	// run.end triage run/report run-1 3
	// more calls were refused: not_found 5, denied 2
}

// A run that changes many files has a line of bounded length.
func TestManyChanges(t *testing.T) {
	set := &changes.Set{}
	for i := range 5000 {
		set.Changes = append(set.Changes, changes.Change{Path: fmt.Sprint("f", i), State: changes.Applied})
	}
	set.Changes = append(set.Changes, changes.Change{Path: "key", State: changes.Held, Reason: "protected"})
	c := call.Freeze(call.Request{Kind: call.KindRun, Run: &call.Run{}}, sandbox.LevelFull)
	all := lines.Author{}.Changes(c, "run-1", &sandbox.Result{Changes: []*changes.Set{set}, ChangesProblem: "no room"})
	if len(all) != 2 || all[0].Event != audit.EventChanges || all[1].Error != "no room" {
		t.Fatalf("%d lines, want one for the folder and one for the problem", len(all))
	}
	if n := len(all[0].Applied); n != 1001 || all[0].Applied[1000] != "and more" {
		t.Errorf("%d names, the last %q; want 1000 and that there are more", n, all[0].Applied[n-1])
	}
	if len(all[0].Held) != 1 || all[0].Held[0] != "key: protected" {
		t.Errorf("held: %q", all[0].Held)
	}
}

// Secrets are removed before a text is cut, since the rest of one might not be recognized.
func TestComplaintsAreHiddenFirst(t *testing.T) {
	secret := strings.Repeat("s", 400)
	c := call.Freeze(call.Request{Kind: call.KindRun, Run: &call.Run{}}, sandbox.LevelFull)
	result := &sandbox.Result{Stderr: sandbox.Capture{Head: []byte("cat: '/" + strings.Repeat("x", 300) + secret + "': Permission denied\n")}}
	e := lines.Author{}.RunEnd(c, "run-1", result, nil, func(s string) string { return strings.ReplaceAll(s, secret, "[redacted]") })
	if len(e.Refused) != 1 || strings.Contains(e.Refused[0], "sss") {
		t.Errorf("refused: %q", e.Refused)
	}
}
