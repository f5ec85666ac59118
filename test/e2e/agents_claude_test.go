package e2e_test

func claudeCode() agent {
	return agent{
		name: "Claude Code", npm: "@anthropic-ai/claude-code", program: "@anthropic-ai/claude-code-linux-*/claude", prefix: "mcp__packs__",
		search: &search{tool: "ToolSearch"},
		lists:  true, alone: "cancel",
		killed: startsAgain,
		start: func(s *stage) ([]string, []string) {
			env, args := claude(s)
			return env, append(args, "-p", task, "--output-format", "json")
		},
		more: []step{{"approved by a hook", "elicitation", nil, hooked}},
		window: &window{
			start: func(s *stage) ([]string, []string) {
				// The answers to the questions at its first start.
				s.write("claude/home/.claude.json", s.json(map[string]any{
					"hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": map[string]any{"approved": []string{"none"}},
					"projects": map[string]any{s.project(): map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
				}))
				env, args := claude(s)
				return env, append(args, "--", task)
			},
			allow: []press{{"to expand", "\x1b[C"}, {"to select", "\r"}, {"✔", "\r"}},
			stays: true,
		},
	}
}

// claude returns the settings that its print mode and its window share.
func claude(s *stage) (env, args []string) {
	server := map[string]any{"command": s.server[0], "args": s.server[1:], "env": s.serverEnv()}
	if s.over == overHTTP {
		server = map[string]any{"type": "http", "url": s.overWeb(), "headers": bearer}
	}
	servers := s.write("claude/mcp.json", s.json(map[string]any{"mcpServers": map[string]any{"packs": server}}))
	return []string{
		"ANTHROPIC_BASE_URL=" + s.m.url, "ANTHROPIC_API_KEY=none", "CLAUDE_CONFIG_DIR=" + s.file("claude/home"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
	}, []string{"--mcp-config", servers, "--strict-mcp-config", "--allowedTools", "mcp__packs"}
}

// hooked makes a hook answer the forms, as a user's program can in print mode.
func hooked(s *stage) {
	answer := s.write("claude/answer.json", s.json(map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": "Elicitation", "action": "accept", "content": map[string]any{"decision": "once"},
	}}))
	hook := map[string]any{"type": "command", "command": "cat '" + answer + "'"}
	s.write("claude/home/settings.json", s.json(map[string]any{
		"hooks": map[string]any{"Elicitation": []any{map[string]any{"hooks": []any{hook}}}},
	}))
	s.said(s.play(callOpen, func(seen turn) move {
		seen.opened(s.t)
		return done(seen)
	}))
	s.decided("elicitation", "open once")
}
