package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// claude runs Claude Code in print mode, with a model of ours, settings that may
// have hooks, and more variables, and returns what it printed.
func (w *world) claude(program string, m *model, hooks map[string]any, more ...string) string {
	w.t.Helper()
	asJSON := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			w.t.Fatal(err)
		}
		return string(raw)
	}
	server := map[string]any{"command": w.program, "args": w.serverArgs(), "env": w.serverEnv()}
	if w.over == overHTTP {
		server = map[string]any{"type": "http", "url": w.overWeb(), "headers": map[string]any{"Authorization": "Bearer " + token}}
	}
	servers := w.write("claude/mcp.json", asJSON(map[string]any{"mcpServers": map[string]any{"packs": server}}))
	settings := w.write("claude/settings.json", asJSON(map[string]any{"hooks": hooks}))
	return w.runAgent(program,
		append([]string{
			"ANTHROPIC_BASE_URL=" + m.url, "ANTHROPIC_API_KEY=none", "CLAUDE_CONFIG_DIR=" + w.file("claude/home"),
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
			// Or else the model is not shown the tools until it looks for them.
			"ENABLE_TOOL_SEARCH=false",
		}, more...),
		"-p", "Write down that it rains.", "--output-format", "json", "--settings", settings,
		"--mcp-config", servers, "--strict-mcp-config", "--allowedTools", "mcp__packs")
}

// elicitationHook answers the server's forms, as a person's program would: it
// keeps each question in the file asked and prints the answer.
func (w *world) elicitationHook(answer string) map[string]any {
	w.t.Helper()
	printed := w.write("claude/answer.json", `{"hookSpecificOutput": {"hookEventName": "Elicitation", `+answer+`}}`)
	hook := map[string]any{"type": "command", "command": "cat >>'" + w.file("asked") + "'; echo >>'" + w.file("asked") + "'; cat '" + printed + "'"}
	return map[string]any{"Elicitation": []any{map[string]any{"hooks": []any{hook}}}}
}

// asked are the titles of the questions that the hook answered.
func (w *world) asked() []string {
	w.t.Helper()
	var titles []string
	for line := range strings.Lines(w.read("asked")) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var q struct {
			Server  string `json:"mcp_server_name"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil || q.Server != "packs" {
			w.t.Errorf("the hook was given %q (%v), want a question of the server's", line, err)
		}
		titles = append(titles, titleOf(q.Message))
	}
	return titles
}

func TestAgentClaudeCode(t *testing.T) {
	program := agentProgram(t, "@anthropic-ai/claude-code-*/claude")

	for _, over := range []transport{overStdio, overHTTP} {
		t.Run("the whole way "+string(over)+", approved by a hook", func(t *testing.T) {
			t.Parallel()
			w := newAgentWorld(t, "elicitation")
			w.over = over
			m := newModel(t, wholeWay(t, true)...)
			out := w.claude(program, m, w.elicitationHook(`"action": "accept", "content": {"decision": "once"}`))
			w.wrote(m, out)
			if diff := cmp.Diff(questions, w.asked()); diff != "" {
				t.Errorf("the hook was asked (-want +got):\n%s", diff)
			}
			w.decided("elicitation", "open once", "enable once", "run once")
		})
	}

	t.Run("the whole way, approved in a terminal", func(t *testing.T) {
		t.Parallel()
		w := newAgentWorld(t, "page,terminal")
		m := newModel(t, wholeWay(t, true)...)
		person := w.approveAll()
		out := w.claude(program, m, w.elicitationHook(`"action": "decline"`))
		w.wrote(m, out)
		if diff := cmp.Diff(questions, person.titles()); diff != "" {
			t.Errorf("the person approved (-want +got):\n%s", diff)
		}
		if got := w.asked(); got != nil {
			t.Errorf("the client was asked %q, want nothing: elicitation is no channel here", got)
		}
		if got := w.read("browser"); got != "opened\n" {
			t.Errorf("the browser was told %q, want to open the page once", got)
		}
		w.decided("terminal", "open once", "enable once", "run once")
	})

	t.Run("denied by a hook", func(t *testing.T) {
		t.Parallel()
		w := newAgentWorld(t, "elicitation")
		m := newModel(t, denied(t, "the person chose to deny")...)
		w.claude(program, m, w.elicitationHook(`"action": "accept", "content": {"decision": "deny"}`))
		w.decided("elicitation", "open deny")
	})

	t.Run("nobody answers", func(t *testing.T) {
		t.Parallel()
		w := newAgentWorld(t, "elicitation")
		m := newModel(t, denied(t, "the question was closed without an answer")...)
		w.claude(program, m, nil)
		w.decided("elicitation", "open deny")
	})

	// As it is shipped, it shows the model the names of tools only. What the server
	// says of itself, and with it of the packs, is there all the same.
	t.Run("tools that are searched for", func(t *testing.T) {
		t.Parallel()
		w := newAgentWorld(t, "elicitation")
		m := newModel(t, func(seen turn) move {
			if got := seen.names(); len(got) > 0 {
				t.Errorf("the model is offered %q, want that it has to look for them", got)
			}
			if !strings.Contains(unindented(seen.text), metadata) || !strings.Contains(seen.text, "mcp__packs__capability_packs_list") {
				t.Errorf("the model reads\n%s\nwant the names of the packs and of the tools", seen.text)
			}
			return move{words: lastWords}
		})
		if out := w.claude(program, m, nil, "ENABLE_TOOL_SEARCH=true"); !strings.Contains(out, lastWords) {
			t.Errorf("the agent printed %q, want the model's last words", tail(out))
		}
	})
}
