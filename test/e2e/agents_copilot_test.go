package e2e_test

import (
	"os"
	"path/filepath"
)

func copilotCLI() agent {
	return agent{
		name: "Copilot CLI", npm: "@github/copilot", program: "@github/copilot-linux-*/copilot", prefix: "packs-",
		lists: true, reads: true, deaf: true, alone: "decline",
		killed: losesTools,
		start: func(s *stage) ([]string, []string) {
			env, args := copilot(s)
			return env, append(args, "-p", task)
		},
		window: &window{
			start: func(s *stage) ([]string, []string) {
				s.write("agent/.copilot/config.json", s.json(map[string]any{"trusted_folders": []string{s.project()}, "banner": "never"}))
				env, args := copilot(s)
				return env, append(args, "-i", task)
			},
			allow: []press{{"enter accept", "\r"}},
			stays: true,
		},
	}
}

// copilot returns the settings shared by its modes. It needs no account if the user provides
// a model, and no network in offline mode.
func copilot(s *stage) (env, args []string) {
	server := map[string]any{"type": "local", "command": s.server[0], "args": s.server[1:], "env": s.serverEnv(), "tools": []string{"*"}}
	if s.over == overHTTP {
		server = map[string]any{"type": "http", "url": s.overWeb(), "headers": bearer, "tools": []string{"*"}}
	}
	s.write("agent/.copilot/mcp-config.json", s.json(map[string]any{"mcpServers": map[string]any{"packs": server}}))
	return copilotModel(s)
}

// copilotModel configures its model.
func copilotModel(s *stage) (env, args []string) {
	return []string{
		"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
		"COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_BASE_URL=" + s.m.url + "/v1", "COPILOT_PROVIDER_API_KEY=none", "COPILOT_MODEL=scripted",
		// It unpacks 230 MB at its first start; do this only once for all tests.
		"COPILOT_PKG_CACHE_HOME=" + filepath.Join(os.Getenv(agentsVar), "copilot"),
	}, []string{"--allow-tool", "packs"}
}
