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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// agentsVar names the folder that scripts/agents.sh installs the agent programs
// into. Without it their tests are skipped: they take programs of 800 MB.
const agentsVar = "PACKS_MCP_AGENTS"

// agentPatience is how long one conversation of an agent may take. It is only
// used up by a test that fails.
const agentPatience = 2 * time.Minute

// agentProgram finds an installed agent by a pattern below node_modules, since
// which package holds it depends on the machine.
func agentProgram(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv(agentsVar)
	if dir == "" {
		t.Skipf("agents: %s is not set; make agents installs the programs and runs this", agentsVar)
	}
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", filepath.FromSlash(pattern)))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s in %s: found %q, %v, want one program", pattern, dir, found, err)
	}
	return found[0]
}

// newAgentWorld is a machine on which a person is asked over these channels, as
// "page,terminal".
func newAgentWorld(t *testing.T, channels string) *world {
	w := newWorld(t)
	w.env = append(w.env, "PACKS_MCP_APPROVAL_CHANNELS="+channels,
		// The browser keeps the page's file, which works once, by its name only.
		"BROWSER=sh -c 'echo opened >>"+w.file("browser")+"' %s")
	return w
}

// file is the path of a file of the test's own.
func (w *world) file(name string) string { return filepath.Join(filepath.Dir(w.packs), name) }

// read returns what is in such a file; empty when there is none.
func (w *world) read(name string) string {
	w.t.Helper()
	raw, err := os.ReadFile(w.file(name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Error(err)
	}
	return string(raw)
}

// write makes such a file.
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

// serverEnv is what an agent's configuration gives the server: some agents give
// it next to nothing else.
func (w *world) serverEnv() map[string]string {
	env := make(map[string]string)
	for _, kv := range w.env {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "PACKS_MCP_") || name == "GORACE" || name == "BROWSER" {
			env[name] = value
		}
	}
	return env
}

// serverArgs are the arguments of the server.
func (w *world) serverArgs() []string {
	return []string{"serve", "--packs", w.packs, "--workspace", w.workspace}
}

// overWeb starts the server of an agent that reaches it over HTTP, and returns its
// address.
func (w *world) overWeb() string {
	w.t.Helper()
	base, _ := w.serve(new(lockedBuffer), token)
	return base + "/mcp"
}

// runAgent runs an agent to its end and returns what it printed on standard
// output. Its environment is PATH, a home of its own and env.
func (w *world) runAgent(program string, env []string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), agentPatience)
	defer cancel()
	home := w.file("agent")
	project := filepath.Join(home, "project")
	if err := os.MkdirAll(project, 0o755); err != nil {
		w.t.Fatal(err)
	}
	outside := w.noOutside()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = project
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb", "LANG=C.UTF-8",
		"HTTP_PROXY=" + outside, "HTTPS_PROXY=" + outside, "ALL_PROXY=" + outside, "NO_PROXY=127.0.0.1,localhost", "DO_NOT_TRACK=1",
	}, env...)
	cmd.WaitDelay = 10 * time.Second // for children that keep its output open
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		w.t.Errorf("%s: %v\nstdout:\n%s\nstderr:\n%s", filepath.Base(program), err, tail(stdout.String()), tail(stderr.String()))
	}
	return stdout.String()
}

// noOutside starts a proxy that lets nothing through, and returns its address.
// An agent that asks for it fails the test.
func (w *world) noOutside() string {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.t.Errorf("the agent wanted to reach %s %s", r.Method, r.Host)
		http.Error(rw, "no network", http.StatusForbidden)
	}))
	w.t.Cleanup(s.Close)
	return s.URL
}

// tail is the end of a long text.
func tail(text string) string {
	const most = 8 << 10
	return text[max(0, len(text)-most):]
}

// A teller is a person in front of a terminal who approves what waits there.
type teller struct {
	leave    func()   // ends, and waits for what is being approved
	approved []string // the titles
}

// approveAll has a person approve every call of w's servers, once each, through
// "packs-mcp approvals", until the test ends.
func (w *world) approveAll() *teller {
	p := new(teller)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	p.leave = func() { cancel(); <-done }
	w.t.Cleanup(p.leave)
	go func() {
		defer close(done)
		again := time.NewTicker(100 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				w.approve(p)
			}
		}
	}()
	return p
}

// approve approves what waits now.
func (w *world) approve(p *teller) {
	out, err := w.command("approvals", "list", "--json").Output()
	if err != nil {
		return // no server runs yet, or any more
	}
	var list struct {
		Pending []struct{ Code, Title, Answered string }
	}
	if err := json.Unmarshal(out, &list); err != nil {
		w.t.Errorf("approvals list --json printed %q: %v", out, err)
		return
	}
	for _, c := range list.Pending {
		if c.Answered != "" {
			continue
		}
		if out, err := w.command("approvals", "approve", c.Code, "--yes").CombinedOutput(); err != nil {
			w.t.Errorf("approvals approve %s (%s): %v\n%s", c.Code, c.Title, err, out)
			continue
		}
		p.approved = append(p.approved, c.Title)
	}
}

// titles has the person leave, and returns what was approved. A call can return
// before the command that approved it does.
func (p *teller) titles() []string {
	p.leave()
	return p.approved
}

// questions are what a person is asked on the whole way.
var questions = []string{
	"Open the documents of pack field-notes?", "Enable 3 tools of pack field-notes?", "Run tool note of pack field-notes?",
}

// lastWords are what the model says when its script went well. An agent prints
// them.
const lastWords = "The note is written."

// metadata is the block of names, as every model has to see it.
const metadata = `Capability Packs (attached; metadata only):
- pack_id: field-notes
  name: field-notes
  description: Keep short notes from the field. Use when asked to write down an observation.
  has_tools_json: true
- pack_id: plain
  name: plain
  description: A document and nothing else.
  has_tools_json: false
`

// rounds is how often the model looks for tools that were enabled, doing
// something else in between: an agent does not wait for the new list before it
// goes back to the model.
const rounds = 50

// wholeWay is the script of a model that goes from names to a run, and checks
// what it sees. An agent that lists the tools again shows the model the tools
// of the pack; the others are told of call_tool.
func wholeWay(t *testing.T, listsAgain bool) []play {
	note := map[string]any{"file": "first", "text": "rain"}
	run := call("capability_packs_call_tool", map[string]any{"pack_id": "field-notes", "tool": "note", "arguments": note})
	enabled := baseTools
	if listsAgain {
		run = call("field-notes__note", note)
		enabled = append(slices.Clone(baseTools), "field-notes__fail", "field-notes__hold", "field-notes__note")
	}
	offers := func(seen turn, want []string) {
		if diff := cmp.Diff(want, seen.names()); diff != "" {
			t.Errorf("turn %d: the tools of the server that the model may call (-want +got):\n%s", len(seen.results)+1, diff)
		}
	}
	return []play{
		func(seen turn) move {
			offers(seen, baseTools)
			if !strings.Contains(unindented(seen.text), metadata) {
				t.Errorf("the model's instructions do not have the names of the packs:\n%s", seen.text)
			}
			if list := seen.tool("capability_packs_list"); list != nil && !strings.Contains(list.description+"\n", metadata) {
				t.Errorf("the description of list is %q, want the names of the packs in it", list.description)
			}
			return call("capability_packs_list", nil)(seen)
		},
		func(seen turn) move {
			packs, _ := seen.last(t)["packs"].([]any)
			if len(packs) != 2 {
				t.Errorf("list gave %v, want two packs", packs)
			}
			return call("capability_packs_open_docs", map[string]any{"pack_id": "field-notes"})(seen)
		},
		func(seen turn) move {
			doc := map[string]any{"path": "SKILL.md", "content": "# Field notes\n\nRead `docs/guide.md`, then call the tool `note`.\n"}
			if diff := cmp.Diff(doc, seen.last(t)["entry_doc"]); diff != "" {
				t.Errorf("open_docs (-want +got):\n%s", diff)
			}
			if folder, _ := seen.last(t)["folder"].(string); !filepath.IsAbs(folder) || !strings.HasSuffix(filepath.ToSlash(folder), "/packs/field-notes") {
				t.Errorf("open_docs: folder = %q, want the pack's", folder)
			}
			offers(seen, baseTools)
			return call("capability_packs_enable_tools", map[string]any{"pack_id": "field-notes"})(seen)
		},
		func(seen turn) move {
			if len(seen.results) == 3 {
				if out := seen.last(t); out["enabled"] != true {
					t.Errorf("enable_tools gave %v, want enabled", out)
				}
			}
			if listsAgain && seen.tool("field-notes__note") == nil && len(seen.results) < rounds {
				next := call("capability_packs_list", nil)(seen)
				next.stay = true
				return next
			}
			t.Logf("the model sees the tools that it may call after %d calls in between", len(seen.results)-3)
			offers(seen, enabled)
			return run(seen)
		},
		func(seen turn) move {
			out := seen.last(t)
			if diff := cmp.Diff(map[string]any{"file": "first", "stars": 3.0}, out["parsed"]); diff != "" || out["ok"] != true {
				t.Errorf("the run gave %v, want ok and what the tool printed (-want +got):\n%s", out, diff)
			}
			return move{words: lastWords}
		},
	}
}

// denied is the script of a model whose first call that needs a person is
// denied, with these words in the message.
func denied(t *testing.T, message string) []play {
	return []play{
		call("capability_packs_open_docs", map[string]any{"pack_id": "field-notes"}),
		func(seen turn) move {
			e, _ := seen.last(t)["error"].(map[string]any)
			if got, _ := e["message"].(string); e["code"] != "denied" || !strings.Contains(got, message) {
				t.Errorf("the model reads %v, want denied: %q", seen.last(t), message)
			}
			return move{words: lastWords}
		},
	}
}

// unindented takes away what an agent may put before each line.
func unindented(text string) string {
	at := strings.Index(text, "Capability Packs (attached; metadata only):\n")
	if at < 0 {
		return text
	}
	indent := text[strings.LastIndex(text[:at], "\n")+1 : at]
	return strings.ReplaceAll(text[at:], "\n"+indent, "\n") + "\n"
}

// decided checks that the log has exactly these decisions, each as "kind
// decision", all over one channel, and as many runs as were allowed.
func (w *world) decided(channel string, want ...string) {
	w.t.Helper()
	var got []string
	runs, allowed := map[audit.Event]int{}, 0
	for _, e := range w.entries() {
		switch {
		case e.Event == "run.start" || e.Event == "run.end":
			runs[e.Event]++
		case e.Decision != "" && e.Kind != "list": // metadata, of which nobody is asked
			got = append(got, e.Kind+" "+e.Decision)
			if e.Channel != channel {
				w.t.Errorf("%s %s was decided over %q, want %q: %s", e.Kind, e.Decision, e.Channel, channel, e.Reason)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("the decisions in the log (-want +got):\n%s", diff)
	}
	for _, decision := range want {
		if decision == "run once" {
			allowed++
		}
	}
	if diff := cmp.Diff(fmt.Sprint(allowed, allowed), fmt.Sprint(runs["run.start"], runs["run.end"])); diff != "" {
		w.t.Errorf("runs that began and ended (-want +got):\n%s", diff)
	}
}

// wrote checks what the run left, and that the agent heard the model out.
func (w *world) wrote(m *model, printed string) {
	w.t.Helper()
	if !strings.Contains(printed, lastWords) {
		w.t.Errorf("the agent printed %q, want the model's last words", tail(printed))
	}
	if got, want := m.played(), len(m.script); got != want {
		w.t.Errorf("the model got through %d of %d plays", got, want)
	}
	if got := w.read(filepath.Join("workspace", "notes", "first.txt")); got != "rain\n3 stars\n" {
		w.t.Errorf("the note is %q, want what the model wrote", got)
	}
}
