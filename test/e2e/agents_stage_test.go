package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// agentPatience is how long one conversation of an agent may take. Only a failing test waits
// that long.
const agentPatience = 10 * time.Minute

// task is the agents' task.
const task = "Write down that it rains."

// bearer is the headers of an agent that uses HTTP.
var bearer = map[string]any{"Authorization": "Bearer " + token}

// A stage is a machine with one agent and one model.
type stage struct {
	*world
	agent
	bin    string   // the agent's program
	server []string // command by which the agent starts the server over stdio
	m      *model
	facts  *facts
	stderr string // the agent's standard error; see play
}

// newStage creates the machine for one step.
func newStage(t *testing.T, a agent, bin string, step step, f *facts) *stage {
	t.Helper()
	w := newWorld(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.asks(step.channels)
	w.env = append(append(w.env, wireVar+"="+w.file("wire.jsonl")), step.env...)
	t.Cleanup(w.serversEnd)
	return &stage{world: w, agent: a, bin: bin, server: append([]string{self, w.program}, w.serverArgs()...), facts: f}
}

// serversEnd waits for the servers that the agent started. The agent may end first, and the
// test's files are about to be removed.
func (w *world) serversEnd() {
	w.t.Helper()
	for _, pid := range w.wireOf().servers() {
		w.until(fmt.Sprintf("the server with pid %d to end", pid), func() bool {
			// The state is the letter after the name in parentheses. A process that was not waited
			// for yet is a zombie.
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, state, _ := strings.Cut(string(stat), ") ")
			return err != nil || strings.HasPrefix(state, "Z")
		})
	}
}

// asks configures the channels over which a person is asked.
func (w *world) asks(channels string) {
	w.env = append(w.env, "PACKS_MCP_APPROVAL_CHANNELS="+channels,
		// Record only the name of the page's file, since the file works only once.
		"BROWSER=sh -c 'echo opened >>"+w.file("browser")+"' %s")
}

// file returns the path of a file of the test.
func (w *world) file(name string) string { return filepath.Join(filepath.Dir(w.packs), name) }

// read returns the contents of such a file; empty if it does not exist.
func (w *world) read(name string) string {
	w.t.Helper()
	raw, err := os.ReadFile(w.file(name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Error(err)
	}
	return string(raw)
}

// write creates such a file and returns its path.
func (w *world) write(name, content string) string {
	w.t.Helper()
	file := w.file(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// serverEnv returns the variables that an agent's configuration gives the server; some agents
// pass almost no others.
func (w *world) serverEnv() map[string]string {
	env := make(map[string]string)
	for _, kv := range w.env {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "PACKS_MCP_") || name == wireVar || name == "GORACE" || name == "BROWSER" {
			env[name] = value
		}
	}
	return env
}

// serverArgs returns the arguments of the server.
func (w *world) serverArgs() []string {
	return []string{"serve", "--packs", w.packs, "--workspace", w.workspace}
}

// overWeb starts the server for an agent that uses HTTP, and returns its address.
func (w *world) overWeb() string {
	w.t.Helper()
	base, _ := w.serve(new(logbuf.Buffer), token)
	return base + "/mcp"
}

// json returns v as JSON.
func (s *stage) json(v any) string {
	s.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}

// play makes the agent do its task with a model that follows a script, and returns its
// standard output.
func (s *stage) play(script ...play) string {
	s.t.Helper()
	s.m = newModel(s.t, s.prefix, script...)
	s.m.search = s.search
	env, args := s.start(s)
	ctx, cancel := context.WithTimeout(s.t.Context(), agentPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.bin, args...)
	cmd.Env, cmd.Dir = s.agentEnv(env), s.project()
	cmd.WaitDelay = 10 * time.Second // children may keep its output open
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		s.t.Errorf("%s: %v\nstdout:\n%s\nstderr:\n%s", s.name, err, tail(stdout.String()), tail(stderr.String()))
	}
	s.stderr = stderr.String()
	if s.t.Failed() {
		s.t.Logf("it printed %q and %q", tail(stdout.String()), tail(s.stderr))
	}
	return stdout.String()
}

// project returns the agent's working folder.
func (s *stage) project() string {
	s.t.Helper()
	project := s.file("agent/project")
	if err := os.MkdirAll(project, 0o755); err != nil {
		s.t.Fatal(err)
	}
	return project
}

// agentEnv returns the agent's environment: PATH, its own home, a proxy that refuses
// everything, and more.
func (s *stage) agentEnv(more []string) []string {
	outside := s.noOutside()
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.file("agent"), "TERM=dumb", "LANG=C.UTF-8",
		"HTTP_PROXY=" + outside, "HTTPS_PROXY=" + outside, "ALL_PROXY=" + outside, "NO_PROXY=127.0.0.1,localhost", "DO_NOT_TRACK=1",
	}, more...)
}

// noOutside starts a proxy that refuses everything, and returns its address. The test fails
// if an agent uses it, except for the host in its row.
func (s *stage) noOutside() string {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.window == nil || r.Host != s.window.reaches {
			s.t.Errorf("the agent wanted to reach %s %s", r.Method, r.Host)
		}
		http.Error(w, "no network", http.StatusForbidden)
	}))
	s.t.Cleanup(proxy.Close)
	return proxy.URL
}

// tail returns the end of a long text.
func tail(text string) string {
	const most = 8 << 10
	return text[max(0, len(text)-most):]
}
