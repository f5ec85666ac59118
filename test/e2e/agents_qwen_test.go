package e2e_test

func qwenCode() agent {
	return agent{
		name: "Qwen Code", npm: "@qwen-code/qwen-code", program: "@qwen-code/qwen-code/cli-entry.js", prefix: "mcp__packs__",
		search: &search{tool: "tool_search", call: "tool_call"},

		killed: startsAgain,
		start: func(s *stage) ([]string, []string) {
			server := map[string]any{"command": s.server[0], "args": s.server[1:], "env": s.serverEnv(), "trust": true}
			if s.over == overHTTP {
				server = map[string]any{"httpUrl": s.overWeb(), "headers": bearer, "trust": true}
			}
			s.write("agent/.qwen/settings.json", s.json(map[string]any{
				"general":    map[string]any{"enableAutoUpdate": false},
				"privacy":    map[string]any{"usageStatisticsEnabled": false},
				"security":   map[string]any{"auth": map[string]any{"selectedType": "openai"}, "folderTrust": map[string]any{"enabled": false}},
				"mcpServers": map[string]any{"packs": server},
			}))
			return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + s.m.url + "/v1", "OPENAI_MODEL=scripted"}, []string{"-p", task}
		},
	}
}
