package e2e_test

func opencode() agent {
	return agent{
		name: "opencode", npm: "opencode-ai", program: "opencode-linux-*/bin/opencode", prefix: "packs_",
		lists: true, reads: true,
		killed: losesTools,
		start: func(s *stage) ([]string, []string) {
			server := map[string]any{"type": "local", "command": s.server, "environment": s.serverEnv()}
			if s.over == overHTTP {
				server = map[string]any{"type": "remote", "url": s.overWeb(), "headers": bearer, "oauth": false}
			}
			s.write("agent/.config/opencode/opencode.json", s.json(map[string]any{
				"model": "scripted/scripted", "small_model": "scripted/scripted", "autoupdate": false, "share": "disabled",
				"provider": map[string]any{"scripted": map[string]any{
					"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": s.m.url + "/v1", "apiKey": "none"},
					"models": map[string]any{"scripted": map[string]any{"tool_call": true}},
				}},
				"mcp": map[string]any{"packs": server},
			}))
			withoutPlugins(s)
			return []string{
				"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
			}, []string{"run", task}
		},
	}
}

// withoutPlugins keeps its first start from fetching a package for plugins from npm.
func withoutPlugins(s *stage) {
	s.write("agent/.config/opencode/node_modules/.empty", "")
	s.write("agent/.config/opencode/package-lock.json", `{"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}`)
}
