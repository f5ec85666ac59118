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
default_tools_approval_mode = "approve"
%s`, m.url+"/v1", w.codexServer()))
	return w.runAgent(program, []string{"CODEX_HOME=" + filepath.Dir(config), "PACKS_TOKEN=" + token},
		"exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only",
		"--disable", "daemon_auto_start", // what would go on after it
		"--disable", "plugins", "--disable", "apps", // what it looks for on the network
		"Write down that it rains.")
}

// codexServer is what Codex's configuration says of the server.
func (w *world) codexServer() string {
	w.t.Helper()
	if w.over == overHTTP {
		return fmt.Sprintf("url = %q\nbearer_token_env_var = \"PACKS_TOKEN\"\n", w.overWeb())
	}
	var s strings.Builder
	fmt.Fprintf(&s, "command = %q\nargs = [", w.program)
	for _, arg := range w.serverArgs() {
		fmt.Fprintf(&s, "%q, ", arg)
	}
	s.WriteString("]\n\n[mcp_servers.packs.env]\n")
	env := w.serverEnv()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&s, "%s = %q\n", name, env[name])
	}
	return s.String()
}

func TestAgentCodex(t *testing.T) {
	program := agentProgram(t, "@openai/codex-*/vendor/*/bin/codex")

	for _, over := range []transport{overStdio, overHTTP} {
		t.Run("the whole way "+string(over)+", approved in a terminal", func(t *testing.T) {
			t.Parallel()
			w := newAgentWorld(t, "page,terminal")
			w.over = over
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
	}

	t.Run("declined by itself", func(t *testing.T) {
		t.Parallel()
		w := newAgentWorld(t, "elicitation")
		m := newModel(t, denied(t, "the client declined by itself")...)
		w.codex(program, m)
		w.decided("elicitation", "open deny")
	})
}
