package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// patience is how long any operation may take before it counts as hanging.
const patience = time.Minute

// A command says how to start a server.
type command struct {
	args []string
	env  []string
}

// A client is a server process and the client that started it. Every question to its user
// is answered with "allow in this chat".
type client struct {
	cmd    *exec.Cmd
	began  time.Time
	stderr *bytes.Buffer
	read   chan struct{} // closed by the reader when the output ends

	mu      sync.Mutex // guards the fields below, and writes to in
	in      io.WriteCloser
	last    int                // id of the last request
	waiting map[int]chan reply // :: id of a request → channel for its reply
	notes   chan note
}

// A reply is the reply to a request, and when its last byte arrived.
type reply struct {
	at     time.Time
	result json.RawMessage
	err    error
}

// A note is a notification.
type note struct {
	at     time.Time
	method string
}

// start starts a server. The caller calls stop.
func (b *bench) start(c command) (*client, error) {
	cmd := exec.CommandContext(b.ctx, c.args[0], c.args[1:]...)
	cmd.Env, cmd.Dir = c.env, b.dir
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := &client{
		cmd: cmd, stderr: new(bytes.Buffer), in: in, read: make(chan struct{}),
		waiting: make(map[int]chan reply), notes: make(chan note, 10_000),
	}
	cmd.Stderr = s.stderr
	s.began = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go s.follow(out)
	return s, nil
}

// follow reads messages until the server's output ends.
func (s *client) follow(out io.Reader) {
	defer close(s.read)
	lines := bufio.NewReaderSize(out, 256<<10)
	for {
		line, err := lines.ReadBytes('\n')
		at := time.Now()
		if err != nil {
			break
		}
		var m struct {
			ID            json.RawMessage
			Method        string
			Result, Error json.RawMessage
		}
		switch err := json.Unmarshal(line, &m); {
		case err != nil:
			s.end(fmt.Errorf("the server wrote %.80q: %w", line, err))
		case m.Method == "elicitation/create":
			_ = s.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":"chat"}}}`, m.ID))
		case m.Method != "":
			s.notes <- note{at, m.Method}
		default:
			r := reply{at: at, result: m.Result}
			if m.Error != nil {
				r.err = fmt.Errorf("the server answered %.300s", m.Error)
			}
			s.deliver(m.ID, r)
		}
	}
	s.end(errors.New("the server ended"))
}

func (s *client) deliver(id json.RawMessage, r reply) {
	var n int
	if json.Unmarshal(id, &n) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.waiting[n]; c != nil {
		c <- r // it has space for one
		delete(s.waiting, n)
	}
}

// end tells everyone who waits that no reply will come.
func (s *client) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.waiting {
		c <- reply{err: err}
		delete(s.waiting, id)
	}
}

func (s *client) send(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.in.Write(append(line, '\n'))
	return err
}

// request sends a request, and returns its reply and the time until it was read, not
// decoded. It is safe for concurrent use.
func (s *client) request(method string, params any) (json.RawMessage, time.Duration, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, 0, err
	}
	c := make(chan reply, 1)
	s.mu.Lock()
	s.last++
	id := s.last
	s.waiting[id] = c
	s.mu.Unlock()
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, raw)
	begin := time.Now()
	if err := s.send(line); err != nil {
		return nil, 0, err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case r := <-c:
		if r.err != nil {
			return nil, 0, fmt.Errorf("%s: %w", method, r.err)
		}
		return r.result, r.at.Sub(begin), nil
	case <-s.read:
		return nil, 0, fmt.Errorf("%s: the server ended; it said %.300q", method, s.stderr)
	case <-late.C:
		return nil, 0, fmt.Errorf("%s: no answer within %s", method, patience)
	}
}

// A greeting is what a server sends before its first call.
type greeting struct {
	took         time.Duration // since the start of the process
	instructions string
	tools        []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
}

// open does what clients do first, up to the first list of tools.
func (s *client) open() (*greeting, error) {
	raw, _, err := s.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"elicitation": map[string]any{}},
		"clientInfo": map[string]any{"name": "bench", "version": "1"},
	})
	if err != nil {
		return nil, err
	}
	if err := s.send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return nil, err
	}
	before := time.Since(s.began)
	list, took, err := s.request("tools/list", struct{}{})
	if err != nil {
		return nil, err
	}
	g := &greeting{took: before + took}
	var first struct{ Instructions string }
	var second struct{ Tools any }
	second.Tools = &g.tools
	if err := errors.Join(json.Unmarshal(raw, &first), json.Unmarshal(list, &second)); err != nil {
		return nil, err
	}
	g.instructions = first.Instructions
	return g, nil
}

// call calls a tool, and returns its structured result.
func (s *client) call(tool string, args map[string]any) (json.RawMessage, time.Duration, error) {
	raw, took, err := s.request("tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return nil, 0, err
	}
	var r struct {
		IsError           bool
		Content           json.RawMessage
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, 0, err
	}
	if r.IsError {
		return nil, 0, fmt.Errorf("%s: %.300s", tool, r.Content)
	}
	return r.StructuredContent, took, nil
}

// cpu returns the server's processor time so far; 0 if there is no server.
func (s *client) cpu() time.Duration {
	if s == nil {
		return 0
	}
	return cpuTime(s.cmd.Process.Pid)
}

// stop ends the server as clients do, and waits for it.
func (s *client) stop() error {
	s.mu.Lock()
	err := s.in.Close()
	s.mu.Unlock()
	late := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	<-s.read
	return cmp.Or(s.cmd.Wait(), err)
}
