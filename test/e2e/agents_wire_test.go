package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

// wireVar names the file to which the test program writes when an agent starts it in place of
// the server: it starts the server, forwards everything in both directions, and keeps a
// copy.
const wireVar = "E2E_WIRE"

// A wireLine is a line of that file.
type wireLine struct {
	Server  int             `json:"server,omitempty"`  // process ID of a server that was started
	From    string          `json:"from,omitempty"`    // sender of the message: "client" or "server"
	Message json.RawMessage `json:"message,omitempty"` //
	End     string          `json:"end,omitempty"`     // how the client ended the server: a signal, or "closes stdin"
}

// passOn acts in place of the server. It returns the server's exit status.
func passOn(file string, command []string) int {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	ended := false
	note := func(line wireLine) {
		mu.Lock()
		defer mu.Unlock()
		if line.End != "" {
			if ended {
				return
			}
			ended = true
		}
		if raw, err := json.Marshal(line); err == nil {
			_, _ = out.Write(append(raw, '\n'))
		}
	}
	server := exec.Command(command[0], command[1:]...)
	server.Stderr = os.Stderr
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, wireVar+"=") {
			server.Env = append(server.Env, kv)
		}
	}
	stdin, err := server.StdinPipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := server.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	note(wireLine{Server: server.Process.Pid})
	go func() {
		for s := range signals {
			note(wireLine{End: map[os.Signal]string{os.Interrupt: "SIGINT", syscall.SIGTERM: "SIGTERM"}[s]})
			_ = server.Process.Signal(s)
		}
	}()
	pass := func(from string, r io.Reader, w io.Writer) {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 {
				if json.Valid(line) {
					note(wireLine{From: from, Message: line})
				}
				_, _ = w.Write(line)
			}
			if err != nil {
				return
			}
		}
	}
	go func() {
		pass("client", os.Stdin, stdin)
		note(wireLine{End: "closes stdin"})
		_ = stdin.Close()
	}()
	pass("server", stdout, os.Stdout)
	_ = server.Wait()
	return max(server.ProcessState.ExitCode(), 0)
}

// A wire is the traffic over standard input and output between an agent and the servers that
// it started.
type wire []wireLine

// wireOf reads the traffic.
func (w *world) wireOf() wire {
	w.t.Helper()
	var all wire
	for line := range strings.Lines(w.read("wire.jsonl")) {
		var l wireLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			break // the last line is still being written
		}
		all = append(all, l)
	}
	return all
}

// A message is a JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// from returns the messages of one side.
func (w wire) from(side string) []message {
	var all []message
	for _, line := range w {
		var m message
		if line.From == side && json.Unmarshal(line.Message, &m) == nil {
			all = append(all, m)
		}
	}
	return all
}

// count returns how many messages with a method one side sent.
func (w wire) count(side, method string) int {
	n := 0
	for _, m := range w.from(side) {
		if m.Method == method {
			n++
		}
	}
	return n
}

// lists reports whether the server returned a list of tools that contains these words.
func (w wire) lists(words string) bool {
	for _, m := range w.from("server") {
		var r struct {
			Tools json.RawMessage `json:"tools"`
		}
		if json.Unmarshal(m.Result, &r) == nil && strings.Contains(string(r.Tools), words) {
			return true
		}
	}
	return false
}

// servers returns the process IDs of the servers, in the order of their start.
func (w wire) servers() []int {
	var all []int
	for _, line := range w {
		if line.Server != 0 {
			all = append(all, line.Server)
		}
	}
	return all
}

// server returns the process ID of the last server; zero if there is none.
func (w wire) server() int {
	all := w.servers()
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1]
}

// actions returns the client's answers to the server's forms, in either era.
func (w wire) actions() []string {
	var all []string
	for _, m := range w.from("client") {
		var result struct {
			Action string `json:"action"`
		}
		var params struct {
			Responses map[string]struct {
				Action string `json:"action"`
			} `json:"inputResponses"`
		}
		if json.Unmarshal(m.Result, &result) == nil && result.Action != "" {
			all = append(all, result.Action)
		}
		if json.Unmarshal(m.Params, &params) == nil {
			for _, r := range params.Responses {
				all = append(all, r.Action)
			}
		}
	}
	return all
}

// instructions returns the server's instructions from its first message with them.
func (w wire) instructions() string {
	for _, m := range w.from("server") {
		var r struct {
			Instructions string `json:"instructions"`
		}
		if json.Unmarshal(m.Result, &r) == nil && r.Instructions != "" {
			return r.Instructions
		}
	}
	return ""
}
