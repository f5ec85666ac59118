package e2e_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// codex runs "codex exec" with a model of ours, and returns what it printed.
func (w *world) codex(program string, m *model) string {
	w.t.Helper()
	args := make([]string, 0, 4)
	for _, arg := range w.serverArgs() {
		args = append(args, fmt.Sprintf("%q", arg))
	}
	env := w.serverEnv()
	var vars strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&vars, "%s = %q\n", name, env[name])
	}
	// It is the person who approves, so Codex does not have to. As it is shipped,
	// "codex exec" refuses tools that may change something.
	config := w.write("codex/config.toml", fmt.Sprintf(`model = "scripted"
model_provider = "scripted"
approval_policy = "never"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = %q
wire_api = "responses"

[mcp_servers.packs]
command = %q
args = [%s]
default_tools_approval_mode = "approve"

[mcp_servers.packs.env]
%s`, m.url+"/v1", w.program, strings.Join(args, ", "), &vars))
	return w.runAgent(program, []string{"CODEX_HOME=" + filepath.Dir(config)},
		"exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only",
		"--disable", "daemon_auto_start", // what would go on after it
		"--disable", "plugins", "--disable", "apps", // what it looks for on the network
		"Write down that it rains.")
}

func TestAgentCodex(t *testing.T) {
	program := agentProgram(t, "@openai/codex-*/vendor/*/bin/codex")

	t.Run("the whole way, approved in a terminal", func(t *testing.T) {
		t.Parallel()
		w := newAgentWorld(t, "page,terminal")
		m := newModel(t, wholeWay(t, false)...)
		person := w.approveAll()
		out := w.codex(program, m)
		w.wrote(m, out)
		if diff := cmp.Diff(questions, person.titles()); diff != "" {
			t.Errorf("the person approved (-want +got):\n%s", diff)
		}
		if got := w.read("browser"); got != "opened\n" {
			t.Errorf("the browser was told %q, want to open the page once", got)
		}
		w.decided("terminal", "open once", "enable once", "run once")
	})

	t.Run("declined by itself", func(t *testing.T) {
		t.Parallel()
		w := newAgentWorld(t, "elicitation")
		m := newModel(t, denied(t, "the person declined")...)
		w.codex(program, m)
		w.decided("elicitation", "open deny")
	})
}
