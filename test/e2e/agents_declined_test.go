package e2e_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// Agents without a person decline each question by themselves. With the channels
// that are on by default, a person in a terminal is asked instead.
func TestAgentDeclinesByItself(t *testing.T) {
	for _, agent := range []struct {
		name, pattern string
		lists         bool // its model gets tools that were enabled
		run           func(w *world, program string, m *model) string
	}{
		{"Codex", "@openai/codex-*/vendor/*/bin/codex", false, (*world).codex},
		{"Claude Code", "@anthropic-ai/claude-code-linux-*/claude", true, func(w *world, program string, m *model) string { return w.claude(program, m, nil) }},
	} {
		t.Run(agent.name, func(t *testing.T) {
			program := agentProgram(t, agent.pattern)
			t.Parallel()
			w := newAgentWorld(t, "elicitation,page,terminal")
			m := newModel(t, wholeWay(t, agent.lists)...)
			person := w.approveAll()
			w.wrote(m, agent.run(w, program, m))
			if diff := cmp.Diff(questions, person.titles()); diff != "" {
				t.Errorf("the person approved (-want +got):\n%s", diff)
			}
			last, declined := make(map[string]string), make(map[string]bool) // :: kind → decision; it was declined
			for _, e := range w.entries() {
				if e.Event != audit.EventDecision || e.Kind == "list" {
					continue
				}
				last[e.Kind] = e.Decision + " " + e.Channel
				if e.Decision == "pending" && e.Channel == "elicitation" && strings.Contains(e.Reason, "the client declined by itself") {
					declined[e.Kind] = true
				}
			}
			for _, kind := range []string{"open", "enable", "run"} {
				if last[kind] != "once terminal" || !declined[kind] {
					t.Errorf("%s: the client declined by itself: %v, and the last decision is %q, want once terminal", kind, declined[kind], last[kind])
				}
			}
		})
	}
}
