package prompt

import (
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// If an answer was kept by an earlier version of the program, the question is asked
// again, and does not claim that the pack changed.
func TestFactsOfAnEarlierVersion(t *testing.T) {
	for _, tt := range []struct {
		fact      string
		then, now []string
		want      string
	}{
		{call.FactPack, []string{"sha256:a", "false"}, []string{"sha256:a", "false", "false"}, "packs-mcp was updated: answers now cover more about the pack's files"},
		{call.FactPack, []string{"sha256:a", "false"}, []string{"sha256:b", "false", "false"}, "the pack's files changed"},
		{call.FactInterpreter, []string{"", "", ""}, nil, "packs-mcp was updated: answers now cover more about the interpreter"},
		{call.FactInterpreter, []string{"/bin/a", "", "", ""}, []string{"/bin/b", "", "", "", "/bin/a", "", "", ""}, "the interpreter was /bin/a, is now /bin/b"},
		{call.FactInterpreter, []string{"/bin/a", "", "", ""}, nil, "the interpreter was /bin/a, is now none"},
	} {
		if got := factChange(tt.fact, tt.then, tt.now); len(got) != 1 || got[0] != tt.want {
			t.Errorf("factChange(%s, %q, %q) = %q, want %q", tt.fact, tt.then, tt.now, got, tt.want)
		}
	}
}
