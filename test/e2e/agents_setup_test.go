package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A setting describes how to test "packs-mcp setup" with an agent.
type setting struct {
	agent agent
	id    string // its ID for setup
	file  string // its settings file, in the home folder
	// others is a settings file with another server, which starts PROGRAM, and with comments
	// if the agent supports them.
	others string
	// start configures its model other than in that file.
	start func(s *stage) (env, args []string)
	// list are the arguments that make it list its servers. lists is what it prints about a
	// server that it reaches or, if it does not try, knows.
	list  []string
	lists string
}

func settingsOfAgents() []setting {
	return []setting{
		{
			agent: claudeCode(), id: "claude-code", file: ".claude.json",
			// It does not support comments.
			others: "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"second\": { \"type\": \"stdio\", \"command\": \"PROGRAM\", \"args\": [\"serve\"], \"env\": {} }\n  },\n  \"tipsHistory\": {}\n}\n",
			start: func(s *stage) ([]string, []string) {
				env, _ := claude(s)
				env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "CLAUDE_CONFIG_DIR=") })
				return env, []string{"-p", task, "--output-format", "json"}
			},
			list: []string{"mcp", "list"}, lists: "✔ Connected",
		},
		{
			agent: codex(), id: "codex", file: ".codex/config.toml",
			others: "# of the team\nmodel_reasoning_effort = \"low\" # fast\n\n[mcp_servers.second] # theirs\ncommand = \"PROGRAM\"\nargs = [\"serve\"]\n\n[tui]\nnotifications = false\n",
			start: func(s *stage) ([]string, []string) {
				s.write("agent/.codex/.keep", "") // it does not create this folder
				given := []string{
					`model="scripted"`, `model_provider="scripted"`, `approval_policy="never"`, `check_for_update_on_startup=false`, `analytics.enabled=false`,
					`model_providers.scripted.name="scripted"`, fmt.Sprintf(`model_providers.scripted.base_url=%q`, s.m.url+"/v1"), `model_providers.scripted.wire_api="responses"`,
				}
				args := []string{"exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", "--disable", "daemon_auto_start", "--disable", "plugins", "--disable", "apps"}
				for _, g := range given {
					args = append(args, "-c", g)
				}
				return nil, append(args, task)
			},
			list: []string{"mcp", "list"}, lists: "enabled",
		},
		{
			agent: geminiCLI(), id: "gemini", file: ".gemini/settings.json",
			others: "{\n  // mine\n  \"ui\": { \"hideTips\": true }, /* always */\n  \"mcpServers\": {\n    \"second\": { \"command\": \"PROGRAM\", \"args\": [\"serve\"] } // theirs\n  }\n}\n",
			start: func(s *stage) ([]string, []string) {
				s.write("agent/project/.gemini/settings.json", s.json(map[string]any{
					"general":  map[string]any{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
					"privacy":  map[string]any{"usageStatisticsEnabled": false},
					"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}},
				}))
				return []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + s.m.url, "GEMINI_CLI_TRUST_WORKSPACE=true"},
					[]string{"--model", "gemini-2.5-flash", "-p", task}
			},
			list: []string{"mcp", "list"}, lists: "Connected",
		},
		{
			agent: opencode(), id: "opencode", file: ".config/opencode/opencode.json",
			others: "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  // mine\n  \"username\": \"ada\", /* always */\n  \"mcp\": {\n    \"second\": { \"type\": \"local\", \"command\": [\"PROGRAM\", \"serve\"] }, // theirs\n  },\n}\n",
			start: func(s *stage) ([]string, []string) {
				s.write("agent/project/opencode.json", s.json(map[string]any{
					"model": "scripted/scripted", "small_model": "scripted/scripted", "autoupdate": false, "share": "disabled",
					"provider": map[string]any{"scripted": map[string]any{
						"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": s.m.url + "/v1", "apiKey": "none"},
						"models": map[string]any{"scripted": map[string]any{"tool_call": true}},
					}},
				}))
				withoutPlugins(s)
				return []string{
					"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
				}, []string{"run", task}
			},
			list: []string{"mcp", "list"}, lists: "connected",
		},
		{
			agent: qwenCode(), id: "qwen", file: ".qwen/settings.json",
			others: "{\n  // mine\n  \"ui\": { \"hideTips\": true }, /* always */\n  \"mcpServers\": {\n    \"second\": { \"command\": \"PROGRAM\", \"args\": [\"serve\"] } // theirs\n  }\n}\n",
			start: func(s *stage) ([]string, []string) {
				system := s.write("agent/system.json", s.json(map[string]any{
					"general":  map[string]any{"enableAutoUpdate": false},
					"privacy":  map[string]any{"usageStatisticsEnabled": false},
					"security": map[string]any{"auth": map[string]any{"selectedType": "openai"}, "folderTrust": map[string]any{"enabled": false}},
				}))
				return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + s.m.url + "/v1", "OPENAI_MODEL=scripted", "QWEN_CODE_SYSTEM_SETTINGS_PATH=" + system},
					[]string{"-p", task}
			},
			list: []string{"mcp", "list"}, lists: "Connected",
		},
		{
			agent: copilotCLI(), id: "copilot", file: ".copilot/mcp-config.json",
			others: "{\n  // mine\n  \"mcpServers\": {\n    \"second\": { \"type\": \"local\", \"command\": \"PROGRAM\", \"args\": [\"serve\"], \"tools\": [\"*\"] } /* theirs */\n  }\n}\n",
			start: func(s *stage) ([]string, []string) {
				env, args := copilotModel(s)
				return env, append(args, "-p", task)
			},
			list: []string{"mcp", "list"}, lists: "local",
		},
	}
}

// TestAgentsSetup runs "packs-mcp setup" on real settings of each agent. The agent then
// starts, lists the server and its tools, and --undo restores the bytes.
func TestAgentsSetup(t *testing.T) {
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	for _, c := range settingsOfAgents() {
		for name, fixture := range map[string]struct {
			text   string
			linked bool
		}{
			"no file":                {},
			"another server":         {text: c.others},
			"CRLF":                   {text: crlf(c.others)},
			"a link":                 {text: c.others, linked: true},
			"an empty file":          {text: "\n"},
			"a link to Windows text": {text: crlf(c.others), linked: true},
		} {
			t.Run(strings.ReplaceAll(c.agent.name, " ", "-")+"/"+name, func(t *testing.T) {
				t.Parallel()
				a := c.agent
				a.start = c.start
				s := newStage(t, a, a.installed(t), step{}, nil)
				file := s.file("agent/" + c.file)
				if fixture.text != "" {
					at := "agent/" + c.file
					if fixture.linked {
						at = "dotfiles/settings"
					}
					real := s.write(at, strings.ReplaceAll(fixture.text, "PROGRAM", s.world.program))
					if fixture.linked {
						if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.Symlink(real, file)); err != nil {
							t.Fatal(err)
						}
					}
				}
				s.setUp(c, file)
			})
		}
	}
}

// setUp sets the agent up, undoes that, sets it up again, and starts the agent.
func (s *stage) setUp(c setting, file string) {
	t := s.t
	before, beforeErr := os.ReadFile(file)
	setup := []string{"setup", c.id, "--yes", "--allow", "--packs", s.packs}
	if out := s.person(setup...); !strings.Contains(out, "is set up: the server started and offers 6 tools") {
		t.Errorf("setup printed %q, want that the server started", out)
	}
	after, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(after, []byte(s.packs)) {
		t.Fatalf("the settings are %q, %v, want the folder of packs in them", after, err)
	}
	s.person("setup", "--undo")
	if got, err := os.ReadFile(file); !bytes.Equal(got, before) || errors.Is(err, fs.ErrNotExist) != errors.Is(beforeErr, fs.ErrNotExist) {
		t.Errorf("--undo left %q, %v, want %q, %v", got, err, before, beforeErr)
	}
	s.person(setup...)
	if got, err := os.ReadFile(file); !bytes.Equal(got, after) {
		t.Errorf("setup wrote %q, %v, want %q as the first time", got, err, after)
	}

	out := s.play(
		func(seen turn) move {
			if s.search == nil {
				if diff := cmp.Diff(baseTools, seen.names()); diff != "" {
					t.Errorf("the tools that the model may call (-want +got):\n%s", diff)
				}
			}
			return callList(seen)
		},
		func(seen turn) move {
			if packs, _ := seen.last(t)["packs"].([]any); len(packs) != 2 {
				t.Errorf("list gave %v, want two packs", packs)
			}
			return done(seen)
		},
	)
	s.said(out)
	env, _ := s.start(s)
	cmd := exec.CommandContext(t.Context(), s.bin, c.list...)
	cmd.Env, cmd.Dir = s.agentEnv(env), s.project()
	listed, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(listed), "packs") || !strings.Contains(string(listed), c.lists) {
		t.Errorf("%s %q: %v, printed %q, want the server and %q", s.name, c.list, err, listed, c.lists)
	}

	// Agents write to their settings too, and those changes stay.
	ran, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.person("setup", "--undo")
	switch got, err := os.ReadFile(file); {
	case bytes.Equal(ran, after):
		if !bytes.Equal(got, before) || errors.Is(err, fs.ErrNotExist) != errors.Is(beforeErr, fs.ErrNotExist) {
			t.Errorf("--undo left %q, %v, want %q, %v", got, err, before, beforeErr)
		}
	case err != nil || bytes.Contains(got, []byte(s.packs)) || bytes.Contains(before, []byte("second")) && !bytes.Contains(got, []byte("second")):
		t.Errorf("--undo left %q, %v, want no entry of ours and those of others", got, err)
	}
}

// person runs the program as a person does whose only variables are HOME and PATH, and
// returns its output.
func (s *stage) person(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.world.program, args...)
	cmd.Env, cmd.Dir = []string{"HOME=" + s.file("agent"), "PATH=" + os.Getenv("PATH")}, s.project()
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("packs-mcp %q: %v\n%s", args, err, out)
	}
	return string(out)
}
