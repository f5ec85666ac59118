//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/screen"
)

// A plainClient is an MCP client that cannot ask questions, and its server.
type plainClient struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	last    int
	answers map[int]chan string // :: id of a request → the text of its result
}

// startClient starts a server as a client without elicitation does.
func startClient(t *testing.T, env []string, packs string) *plainClient {
	t.Helper()
	c := &plainClient{t: t, cmd: exec.Command("packs-mcp", "serve", "--packs", packs), answers: make(map[int]chan string)}
	c.cmd.Env = env
	var stderr bytes.Buffer
	c.cmd.Stderr = &stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			c.received(lines.Bytes())
		}
	}()
	t.Cleanup(func() {
		late := time.AfterFunc(10*time.Second, func() { _ = c.cmd.Process.Kill() })
		defer late.Stop()
		c.in.Close()
		<-ended
		if err := c.cmd.Wait(); err != nil && !t.Failed() && c.cmd.ProcessState.Exited() {
			t.Errorf("the server ended with %v\n%s", err, stderr.String())
		}
	})
	initialized := c.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"plain","version":"1"}}`)
	c.until(initialized, "protocolVersion")
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *plainClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *plainClient) request(method, params string) <-chan string {
	c.t.Helper()
	c.mu.Lock()
	c.last++
	id, answer := c.last, make(chan string, 1)
	c.answers[id] = answer
	c.mu.Unlock()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	return answer
}

// call runs the program of a pack.
func (c *plainClient) call(pack string) <-chan string {
	c.t.Helper()
	return c.request("tools/call", fmt.Sprintf(`{"name":"capability_packs_exec_best_effort","arguments":{"pack_id":%q,"command":"./go.sh"}}`, pack))
}

func (c *plainClient) received(line []byte) {
	var m struct {
		ID     int
		Result json.RawMessage
	}
	if json.Unmarshal(line, &m) != nil || m.Result == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.answers[m.ID]; answer != nil {
		answer <- string(m.Result)
		delete(c.answers, m.ID)
	}
}

// until waits for the result of a request, which must contain words.
func (c *plainClient) until(answer <-chan string, words string) string {
	c.t.Helper()
	select {
	case text := <-answer:
		if !strings.Contains(text, words) {
			c.t.Errorf("the result is %s\nwant %q in it", text, words)
		}
		return text
	case <-time.After(20 * time.Second):
		c.t.Fatalf("there is no result; want one with %q", words)
		return ""
	}
}

// commandOf runs a command without a terminal.
func commandOf(env []string, args ...string) (code int, output string) {
	cmd := exec.Command("packs-mcp", args...)
	cmd.Env = env
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	out, err := cmd.CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode(), string(out)
	} else if err != nil {
		return -1, err.Error()
	}
	return 0, string(out)
}

const alwaysPrompt = "[o]nce  [c]hat  [a]lways  [d]eny  [s]kip  [q]uit: "

// Clients that cannot ask wait, and a person answers in another terminal.
func TestClientsWaitForATerminal(t *testing.T) {
	t.Parallel() // it waits most of the time
	dir, env := home(t)
	env = append(env, "PACKS_MCP_APPROVAL_CHANNELS=terminal", "TERM=dumb")
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "one", "echo one went\n")
	plantPack(t, packs, "two", "echo two went\n")
	s := screen.Start(t, env, dir, "approvals")
	s.Until("No call waits. No server of yours is running")
	a, b := startClient(t, env, packs), startClient(t, env, packs)

	one := a.call("one")
	question := s.Until(alwaysPrompt)
	if !strings.Contains(question, "Run ./go.sh for pack one?") || !strings.Contains(question, fmt.Sprintf("pid %d", a.cmd.Process.Pid)) {
		t.Errorf("the question is\n%s", question)
	}
	s.Enter("o\r")
	s.Until("Allowed (once): ")
	a.until(one, "one went")

	two := b.call("two") // of the other server
	question = s.Until(alwaysPrompt)
	if !strings.Contains(question, fmt.Sprintf("pid %d", b.cmd.Process.Pid)) {
		t.Errorf("the question is\n%s", question)
	}
	s.Enter("d\r")
	s.Until("Denied: ")
	b.until(two, `"code":"denied"`)

	// Answered by its code, while it is shown.
	one = a.call("one")
	question = s.Until(alwaysPrompt)
	code := regexp.MustCompile(`---- (\S+) ---`).FindStringSubmatch(question)[1]
	if status, out := commandOf(env, "approvals", "approve", strings.ToLower(code)); status != 0 || !strings.Contains(out, "Allowed (once)") {
		t.Errorf("approvals approve = %d, %s", status, out)
	}
	a.until(one, "one went")
	s.Until("That call ")
	s.Until("No call waits.")
	if status, out := commandOf(env, "approvals", "deny", code); status != 1 || !strings.Contains(out, "it was answered before: allowed, in a terminal at ") {
		t.Errorf("approvals deny of a spent code = %d, %s", status, out)
	}
	s.Enter("q\r")
	if status := s.Ended(); status != 0 {
		t.Errorf("approvals ended with %d\n%s", status, s.Screen())
	}

	var decisions []string
	for _, e := range events(t, dir)["decision"] {
		decisions = append(decisions, fmt.Sprint(e["pack"], " ", e["decision"], " by ", e["channel"]))
	}
	if got, want := strings.Join(decisions, ", "), "one once by terminal, two deny by terminal, one once by terminal"; got != want {
		t.Errorf("the log has the decisions %q, want %q", got, want)
	}
}

// A call that is not answered in time returns its code. A later answer applies
// once to the same call, made again.
func TestAnswerAfterTheCall(t *testing.T) {
	t.Parallel() // it waits most of the time
	dir, env := home(t)
	env = append(env, "PACKS_MCP_APPROVAL_CHANNELS=terminal", "PACKS_MCP_APPROVAL_WAIT=1s")
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "one", "echo one went\n")
	c := startClient(t, env, packs)
	text := c.until(c.call("one"), `"code":"approval_pending"`)
	found := regexp.MustCompile(`approvals approve ([0-9A-Z]{4}-[0-9A-Z]{4})`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the result names no code: %s", text)
	}
	if status, out := commandOf(env, "approvals", "approve", found[1]); status != 0 || !strings.Contains(out, "Have it make the same call again within 9 min.") {
		t.Errorf("approvals approve = %d, %s", status, out)
	}
	c.until(c.call("one"), "one went")
	text = c.until(c.call("one"), `"code":"approval_pending"`) // once
	if strings.Contains(text, found[1]) {
		t.Errorf("the second question has the code of the first: %s", text)
	}
	if status, out := commandOf(env, "approvals", "approve", found[1]); status != 1 || !strings.Contains(out, found[1]) {
		t.Errorf("approvals approve of a spent code = %d, %s", status, out)
	}

	// A killed server leaves its announcement behind, which is ignored.
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	if files, err := filepath.Glob(filepath.Join(dir, "state", "run", "*.json")); err != nil || len(files) != 1 {
		t.Errorf("the killed server left %q (%v), want its announcement", files, err)
	}
	if status, out := commandOf(env, "approvals", "list", "--json"); status != 0 || !strings.Contains(out, `"pending": []`) {
		t.Errorf("approvals list of a killed server = %d, %s", status, out)
	}
}

// A question that the client shows can be answered in a terminal from its first
// moment, in both eras, even if it is what a server is started for.
func TestFirstQuestionIsInTheTerminal(t *testing.T) {
	for era, lines := range map[string][]string{
		"before": {
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"capability_packs_open_docs","arguments":{"pack_id":"one"}}}`,
		},
		"2026-07-28": {
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"capability_packs_open_docs","arguments":{"pack_id":"one"},` +
				`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},` +
				`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`,
		},
	} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			dir, env := home(t)
			env = append(env, "PACKS_MCP_APPROVAL_CHANNELS=elicitation,terminal")
			packs := filepath.Join(dir, "packs")
			plantPack(t, packs, "one", "echo one went\n")
			cmd := exec.Command("packs-mcp", "serve", "--packs", packs)
			cmd.Env = env
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
			if _, err := io.WriteString(in, strings.Join(lines, "\n")+"\n"); err != nil {
				t.Fatal(err)
			}
			asked := regexp.MustCompile(`packs-mcp approvals show ([0-9A-Z]{4}-[0-9A-Z]{4})`)
			var code []string
			all := bufio.NewScanner(out)
			all.Buffer(nil, 1<<20)
			for code == nil && all.Scan() {
				code = asked.FindStringSubmatch(all.Text())
			}
			if code == nil {
				t.Fatal("the server ended without a question that has a code")
			}
			if status, list := commandOf(env, "approvals", "list", "--json"); status != 0 || !strings.Contains(list, code[1]) {
				t.Errorf("approvals list = %d, %s\nwant the call %s, which the client shows", status, list, code[1])
			}
		})
	}
}
