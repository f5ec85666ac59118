package e2e_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A typist sits at a shell, and their keystrokes are counted.
type typist struct {
	*terminal
	commands, keys int
}

// prompt is what the shell shows when it waits.
const prompt = "type here>"

// command types a command line.
func (p *typist) command(line string) {
	p.t.Helper()
	p.commands++
	p.keys += len(line) + 1
	p.press(line + "\r")
}

// answer presses keys once some words are on the screen.
func (p *typist) answer(words, keys string) {
	p.t.Helper()
	p.until(words)
	p.keys += len(keys)
	p.press(keys)
}

// allows presses the keys that allow a call in the agent's form, until done.
func (p *typist) allows(keys []press, done func() bool) {
	p.t.Helper()
	p.until(keys[0].words)
	for i, press := range keys {
		p.keys += len(press.key)
		p.pressUntil(press.key, func() bool { return p.has(press.words) }, func() bool {
			if i+1 < len(keys) {
				return p.has(keys[i+1].words)
			}
			return done()
		})
	}
}

// A person who uses Claude Code clones the repository and follows the README: the first
// approved run takes three commands. At the start, the home folder contains nothing of
// packs-mcp.
func TestStopwatch(t *testing.T) {
	t.Parallel()
	a := claudeCode()
	s := newStage(t, a, a.installed(t), step{}, nil)
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const build, setup = "make build", "bin/packs-mcp setup"
	if _, after, ok := strings.Cut(string(readme), "\n"+build+"\n"); !ok || !strings.HasPrefix(after, setup+" ") {
		t.Errorf("the README does not say %q and %q", build, setup)
	}
	if out, err := exec.Command("git", "clone", "-q", filepath.Join("..", ".."), s.file("agent/project")).CombinedOutput(); err != nil {
		t.Skipf("a clone of this repository: %v\n%s", err, out)
	}
	clean := s.file("agent")
	s.write("agent/.claude.json", s.json(map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": map[string]any{"approved": []string{"none"}},
		"projects": map[string]any{s.project(): map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	}))
	if err := errors.Join(os.Mkdir(filepath.Join(clean, "bin"), 0o755), os.Symlink(s.bin, filepath.Join(clean, "bin", "claude"))); err != nil {
		t.Fatal(err)
	}

	var ran bool
	s.m = newModel(t, s.prefix,
		call("capability_packs_enable_tools", map[string]any{"pack_id": "git-helper"}),
		call("capability_packs_call_tool", map[string]any{"pack_id": "git-helper", "tool": "log", "arguments": map[string]any{"count": 5}}),
		func(seen turn) move {
			out := seen.last(t)
			if text, _ := out["stdout"].(string); out["ok"] != true || strings.Count(text, "\n") != 5 {
				t.Errorf("the run gave %v, want five commits", out)
			}
			ran = true
			return done(seen)
		})
	s.m.search = s.search
	env, _ := claude(s)
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "CLAUDE_CONFIG_DIR=") })
	env = append(s.agentEnv(env), "TERM=xterm-256color", "PS1="+prompt+" ", "ENV=", "PATH="+filepath.Join(clean, "bin")+":"+os.Getenv("PATH"))
	for _, name := range []string{"GOPROXY", "GOMODCACHE", "GOCACHE", "GOSUMDB", "GOFLAGS"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}

	began := time.Now()
	shell := *s
	shell.bin = "/bin/sh"
	me := &typist{terminal: shell.terminal(env, []string{"-i"})}
	me.until(prompt)
	me.command(build)
	me.until(prompt)
	me.command(setup)
	me.answer("Write this?", "y\r")
	me.answer("packs-mcp still asks.", "y\r")
	me.until("Claude Code is set up: the server started and offers 6 tools")
	me.until(prompt)
	me.command("claude 'Write down the last five commits.'")
	me.allows(s.window.allow, func() bool { return s.m.played() > 1 }) // to enable the tools
	me.allows(s.window.allow, func() bool { return s.m.played() > 2 }) // to run one
	me.until(lastWords)
	took := time.Since(began).Round(time.Second)
	me.press("/exit\r")
	me.until(prompt)
	me.press("exit\r")
	t.Cleanup(func() { // the server may still be shutting down
		late := time.Now().Add(patience)
		for os.RemoveAll(clean) != nil && time.Now().Before(late) {
			time.Sleep(50 * time.Millisecond)
		}
	})
	t.Logf("%d commands and %d keys, %s", me.commands, me.keys, took)
	// The keys are those above: three command lines, two confirmations, and three keys in each
	// of two forms.
	if me.commands != 3 || me.keys != 88 || !ran {
		t.Errorf("%d commands and %d keys, and the tool ran: %v; want 3, 88 and true", me.commands, me.keys, ran)
	}

	// A person allowed exactly that run in the client's form.
	var decided []string
	for line := range strings.Lines(s.person("audit", "show", "--json")) {
		var e struct{ Event, Kind, Decision, Channel string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("audit show --json printed %q: %v", line, err)
		}
		if e.Decision != "" && e.Kind == "run" {
			decided = append(decided, e.Kind+" "+e.Decision)
		}
	}
	if want := []string{"run once"}; !slices.Equal(decided, want) {
		t.Errorf("the log has the decisions %q, want %q", decided, want)
	}
}
