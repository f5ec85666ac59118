package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func codex() agent {
	return agent{
		name: "Codex", npm: "@openai/codex", program: "@openai/codex-linux-*/vendor/*/bin/codex", prefix: "mcp__packs__",
		alone:  "decline",
		killed: staysDead,
		start: func(s *stage) ([]string, []string) {
			// The person approves, so Codex need not. By default, "codex exec" refuses tools that may
			// change something.
			env, args := codexSettings(s, "never")
			return env, append(append([]string{"exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only"}, args...), task)
		},
		window: &window{
			start: func(s *stage) ([]string, []string) {
				env, args := codexSettings(s, "on-request")
				return env, append(append([]string{"--no-alt-screen"}, args...), task)
			},
			allow:   []press{{"enter to submit", "\r"}},
			stays:   true,
			reaches: "raw.githubusercontent.com:443", // for announcements
		},
	}
}

// codexSettings writes its configuration, with its own approval policy, and returns the
// settings shared by its modes.
func codexSettings(s *stage, asks string) (env, args []string) {
	s.write("agent/.codex/config.toml", fmt.Sprintf(`model = "scripted"
model_provider = "scripted"
approval_policy = %q
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = %q
wire_api = "responses"

[projects.%q]
trust_level = "trusted"

[mcp_servers.packs]
default_tools_approval_mode = "approve"
%s`, asks, s.m.url+"/v1", s.project(), codexServer(s)))
	return []string{"PACKS_TOKEN=" + token}, []string{
		"--disable", "daemon_auto_start", // it would outlive the agent
		"--disable", "plugins", "--disable", "apps", // it looks for these on the network
	}
}

// codexServer returns the entry for the server in Codex's configuration.
func codexServer(s *stage) string {
	if s.over == overHTTP {
		return fmt.Sprintf("url = %q\nbearer_token_env_var = \"PACKS_TOKEN\"\n", s.overWeb())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "command = %q\nargs = [", s.server[0])
	for _, arg := range s.server[1:] {
		fmt.Fprintf(&b, "%q, ", arg)
	}
	b.WriteString("]\n\n[mcp_servers.packs.env]\n")
	env := s.serverEnv()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "%s = %q\n", name, env[name])
	}
	return b.String()
}
