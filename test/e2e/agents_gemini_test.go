package e2e_test

func geminiCLI() agent {
	return agent{
		name: "Gemini CLI", npm: "@google/gemini-cli", program: "@google/gemini-cli/bundle/gemini.js", prefix: "mcp_packs_",
		lists: true, reads: true,
		killed: staysDead,
		start: func(s *stage) ([]string, []string) {
			server := map[string]any{"command": s.server[0], "args": s.server[1:], "env": s.serverEnv(), "trust": true}
			if s.over == overHTTP {
				server = map[string]any{"httpUrl": s.overWeb(), "headers": bearer, "trust": true}
			}
			s.write("agent/.gemini/settings.json", s.json(map[string]any{
				"general":    map[string]any{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
				"privacy":    map[string]any{"usageStatisticsEnabled": false},
				"security":   map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}, "folderTrust": map[string]any{"enabled": false}},
				"mcpServers": map[string]any{"packs": server},
			}))
			return []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + s.m.url},
				[]string{"--model", "gemini-2.5-flash", "--skip-trust", "-p", task}
		},
	}
}
