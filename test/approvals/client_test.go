//go:build unix

package approvals_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

type object = map[string]any

// The tools that every client has.
const (
	openDocs = "capability_packs_open_docs"
	readFile = "capability_packs_read_file"
	enable   = "capability_packs_enable_tools"
	callTool = "capability_packs_call_tool"
	execTool = "capability_packs_exec_best_effort"
)

// A client started its own server, and speaks raw JSON with it.
type client struct {
	w      *world
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr *logbuf.Buffer
	ended  chan struct{} // closed when the server's output has ended
	modern bool          // 2026-07-28
	killed bool

	mu      sync.Mutex
	next    int
	replies map[int]chan object
	answer  answerer // nil: it cannot ask
	asked   []string
	notes   []object
	forms   []any           // the ids of the open questions
	lines   strings.Builder // everything that came
}

// An answerer is the person in front of the client: it gets the question and returns
// the result, or nil if they never answer.
type answerer func(question string) object

// choose returns a person who always makes the same choice.
func choose(decision string) answerer {
	return func(string) object { return accept(decision) }
}

func accept(decision string) object {
	return object{"action": "accept", "content": object{"decision": decision}}
}

// mute is a person who never answers, at a client that can ask.
func mute(string) object { return nil }

// connect starts a server for a client of the older era. A nil answerer is a
// client that cannot ask.
func (w *world) connect(answer answerer, flags ...string) *client {
	w.t.Helper()
	c := w.start(answer, flags...)
	capabilities := object{}
	if answer != nil {
		capabilities["elicitation"] = object{}
	}
	c.request("initialize", object{
		"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": object{"name": "raw", "version": "1"},
	})
	c.send(object{"method": "notifications/initialized"})
	return c
}

// connectModern starts a server for a client of 2026-07-28.
func (w *world) connectModern(answer answerer, flags ...string) *client {
	w.t.Helper()
	c := w.start(answer, flags...)
	c.modern = true
	return c
}

func (w *world) start(answer answerer, flags ...string) *client {
	w.t.Helper()
	c := &client{w: w, stderr: new(logbuf.Buffer), ended: make(chan struct{}), replies: make(map[int]chan object), answer: answer}
	c.cmd = exec.Command(w.program, append([]string{"serve", "--packs", w.packs}, flags...)...)
	c.cmd.Env, c.cmd.Dir, c.cmd.Stderr = w.env, w.root, c.stderr
	c.cmd.WaitDelay = time.Second
	out, pipe := io.Pipe()
	c.cmd.Stdout = pipe
	var err error
	if c.in, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	reading := make(chan struct{})
	go func() { c.read(out); close(reading) }()
	go func() {
		_ = c.cmd.Wait() // ProcessState has the result
		_ = pipe.Close()
		<-reading
		close(c.ended)
	}()
	w.t.Cleanup(c.close)
	return c
}

// close ends the session as clients do, and checks how the server ended. It may be
// called again.
func (c *client) close() {
	c.w.t.Helper()
	_ = c.in.Close()
	select {
	case <-c.ended:
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		c.w.t.Errorf("the server did not end with its input; it logged:\n%s", c.stderr)
		return
	}
	log := c.stderr.String()
	if strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic") || hasControl(log) {
		c.w.t.Errorf("the server logged:\n%s", log)
	}
	if c.killed || c.w.complains {
		return
	}
	if status := c.cmd.ProcessState.ExitCode(); status != 0 || strings.Contains(log, "level=ERROR") {
		c.w.t.Errorf("the server ended with %d and logged:\n%s", status, log)
	}
}

// read takes every line that the server writes.
func (c *client) read(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m object
		if err := json.Unmarshal(line, &m); err != nil {
			c.w.t.Errorf("the server wrote a line that is not JSON: %q", line)
			return
		}
		c.mu.Lock()
		c.lines.Write(line)
		id, _ := m["id"].(float64)
		switch {
		case m["method"] == "elicitation/create":
			question, _ := m["params"].(object)["message"].(string)
			c.asked = append(c.asked, question)
			c.forms = append(c.forms, m["id"])
			answer := c.answer
			go func() {
				if result := answer(question); result != nil {
					c.send(object{"id": m["id"], "result": result})
				}
			}()
		case m["method"] != nil:
			c.notes = append(c.notes, m)
		case c.replies[int(id)] != nil:
			c.replies[int(id)] <- m
		default:
			c.w.t.Errorf("a reply came to no request: %s", line)
		}
		c.mu.Unlock()
	}
}

// send writes a message. If the server was killed, the message is lost.
func (c *client) send(m object) {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		c.w.t.Error(err)
		return
	}
	_, _ = c.in.Write(append(line, '\n'))
}

// A request may still wait for its reply.
type request struct {
	c     *client
	id    int
	reply chan object
}

func (c *client) begin(method string, params object) *request {
	c.mu.Lock()
	c.next++
	r := &request{c, c.next, make(chan object, 1)}
	c.replies[r.id] = r.reply
	answer := c.answer
	c.mu.Unlock()
	if params == nil {
		params = object{}
	}
	if c.modern {
		capabilities := object{}
		if answer != nil {
			capabilities["elicitation"] = object{"form": object{}}
		}
		params["_meta"] = object{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientInfo":         object{"name": "raw", "version": "2"},
			"io.modelcontextprotocol/clientCapabilities": capabilities,
		}
	}
	c.send(object{"id": r.id, "method": method, "params": params})
	return r
}

// beginTool calls a tool and does not wait for the reply.
func (c *client) beginTool(name string, args object) *request {
	return c.begin("tools/call", object{"name": name, "arguments": args})
}

// wait returns the reply; nil if the server ended without one.
func (r *request) wait() object {
	r.c.w.t.Helper()
	select {
	case m := <-r.reply:
		return m
	case <-r.c.ended:
		select {
		case m := <-r.reply:
			return m
		default:
			return nil
		}
	case <-time.After(2 * patience):
		r.c.w.t.Errorf("the server does not answer; it logged:\n%s", r.c.stderr)
		return nil
	}
}

func (c *client) request(method string, params object) object {
	c.w.t.Helper()
	reply := c.begin(method, params).wait()
	result, ok := reply["result"].(object)
	if !ok {
		c.w.t.Fatalf("%s %v = %v, want a result; the server logged:\n%s", method, params, reply, c.stderr)
	}
	return result
}

// An outcome is the result of a tool call.
type outcome struct {
	t       *testing.T
	result  object
	content object // structured
	isError bool
	code    string // of the error
	message string // of the error, and its hint
}

// outcome waits for the result of a tool call.
func (r *request) outcome() *outcome {
	r.c.w.t.Helper()
	reply := r.wait()
	result, ok := reply["result"].(object)
	if !ok {
		r.c.w.t.Errorf("a call = %v, want a result; the server logged:\n%s", reply, r.c.stderr)
		return &outcome{t: r.c.w.t, code: "none"}
	}
	return r.c.outcomeOf(result)
}

func (c *client) outcomeOf(result object) *outcome {
	c.w.t.Helper()
	o := &outcome{t: c.w.t, result: result}
	o.content, _ = result["structuredContent"].(object)
	o.isError, _ = result["isError"].(bool)
	if e, ok := o.content["error"].(object); ok {
		o.code, _ = e["code"].(string)
		message, _ := e["message"].(string)
		hint, _ := e["hint"].(string)
		o.message = message + " " + hint
		if message == "" || !o.isError {
			c.w.t.Errorf("an error without a message, or not marked as one: %v", result)
		}
	}
	if o.code == "denied" {
		c.w.mu.Lock()
		c.w.denied++
		c.w.mu.Unlock()
	}
	return o
}

func (c *client) tool(name string, args object) *outcome {
	c.w.t.Helper()
	return c.beginTool(name, args).outcome()
}

// greet runs the pack's tool.
func greet(who string) (string, object) {
	return callTool, object{"pack_id": "triage", "tool": "greet", "arguments": object{"who": who}}
}

// want checks how a call ended: with this error code, or without an error if code is
// empty, and with all of these words in its message or result.
func (o *outcome) want(code string, words ...string) *outcome {
	o.t.Helper()
	text := o.message
	if code == "" {
		b, _ := json.Marshal(o.content)
		text = string(b)
	}
	if o.code != code || o.isError != (code != "") || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
		o.t.Fatalf("the call = %v, want the error %q and the words %q", o.result, code, words)
	}
	return o
}

// approvalCode returns the code that an error names.
func (o *outcome) approvalCode() string {
	e, _ := o.content["error"].(object)
	code, _ := e["approval_code"].(string)
	return code
}

// enable enables the tools of triage. A person allows that in the client, or by the
// command if the client cannot ask.
func (c *client) enable(pack string) {
	c.w.t.Helper()
	if c.answer == nil {
		c.approved(enable, object{"pack_id": pack}).want("")
		return
	}
	c.tool(enable, object{"pack_id": pack}).want("")
}

// approved makes a call that a person allows by the command. On a busy machine the
// command may take longer than the call waits; then the same call is made again, as
// the model is told to do.
func (c *client) approved(name string, args object) *outcome {
	c.w.t.Helper()
	r := c.beginTool(name, args)
	c.w.approve()
	if o := r.outcome(); o.code != "approval_pending" {
		return o
	}
	return c.tool(name, args)
}

// answers sets how the next questions are answered.
func (c *client) answers(a answerer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = a
}

// questions returns the questions since the last call.
func (c *client) questions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// notified returns the notifications of a method.
func (c *client) notified(method string) []object {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []object
	for _, n := range c.notes {
		if n["method"] == method {
			params, _ := n["params"].(object)
			all = append(all, params)
		}
	}
	return all
}
