//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/screen"
)

// home returns a folder for all files of one run of the program, and its
// environment.
func home(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	return dir, append(os.Environ(), "HOME="+dir, "PACKS_MCP_HOME="+filepath.Join(dir, "state"),
		"PACKS_MCP_SANDBOX_REQUIRE=none") // programs run at this machine's best level, which may be none
}

// plantPack writes a pack with one tool, which runs a script.
func plantPack(t *testing.T, root, name, script string) {
	t.Helper()
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tools, err := json.Marshal([]any{map[string]any{
		"name": "go", "description": "Goes.", "inputSchema": map[string]any{"type": "object"}, "command": []string{"./go.sh"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string]string{
		"SKILL.md":   "---\nname: " + name + "\ndescription: Goes.\n---\nThe words of the document.\n",
		"tools.json": string(tools),
		"go.sh":      "#!/bin/sh\n" + script,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(data), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// events returns what the audit log of a run holds, by event.
func events(t *testing.T, dir string) map[string][]map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "state", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]map[string]any)
	for line := range bytes.Lines(data) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("audit line %q: %v", line, err)
		}
		event, _ := e["event"].(string)
		all[event] = append(all[event], e)
	}
	return all
}

// SIGTERM ends a server cleanly: running programs are killed, the status is 0,
// and the log has the end of the run and of the server.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) { testSignal(t, sig) })
	}
}

func testSignal(t *testing.T, sig syscall.Signal) {
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "hold", holdAlive)
	alive := vigilOver(t, filepath.Join(dir, "state", "workspaces"))
	cmd := exec.Command("packs-mcp", "serve", "--packs", packs)
	cmd.Env = env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// A child would inherit an ignored signal, such as SIGHUP under nohup.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, sig)
	defer signal.Stop(caught)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	send := func(format string, args ...any) {
		t.Helper()
		if _, err := fmt.Fprintf(in, format+"\n", args...); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() map[string]any {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the server ended; it said %s", stderr.String())
		}
		var m map[string]any
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatalf("the server wrote %q: %v", lines.Text(), err)
		}
		return m
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	receive()
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"capability_packs_exec_best_effort","arguments":{"pack_id":"hold","command":"./go.sh"}}}`)
	ask := receive()
	if ask["method"] != "elicitation/create" {
		t.Fatalf("the server sent %v, want a question", ask)
	}
	send(`{"jsonrpc":"2.0","id":%v,"result":{"action":"accept","content":{"decision":"once"}}}`, ask["id"])
	alive.begins()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // perhaps the reply of the call that was ended
		if !json.Valid(lines.Bytes()) {
			t.Errorf("the server wrote %q", lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v, want status 0; it said %s", err, stderr.String())
	}
	alive.ends()
	all := events(t, dir)
	if len(all["run.end"]) != 1 || all["run.end"][0]["cause"] != "cancelled" || len(all["server.stop"]) != 1 {
		t.Errorf("the log has %v, want the end of the run and of the server", all)
	}
}

// The server's log says once how programs are confined, even if none ran.
func TestSandboxIsLogged(t *testing.T) {
	_, env := home(t)
	cmd := exec.Command("packs-mcp", "serve")
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var said []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "programs are confined\"") {
			said = append(said, lines.Text())
			in.Close() // more may follow until the end
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "level=INFO") || !regexp.MustCompile(` level=(full|partial|none)\b`).MatchString(said[0]) {
		t.Errorf("the log says %q, want one line with the level", said)
	}
}

// A vigil is a named pipe that a program holds open as long as it, or anything
// that it started, lives. It works in every sandbox, where process ids may mean
// nothing outside.
type vigil struct {
	t      *testing.T
	opened chan *os.File
	pipe   *os.File
}

// holdAlive is a script that writes to the pipe of a vigil for as long as it runs.
const holdAlive = "while ! [ -p alive ]; do sleep 0.02; done; exec 9> alive; while :; do sleep 0.05; done\n"

// vigilOver watches a program in the first workspace created in the folder
// workspaces. A workspace of the user's own would be layered, and a pipe in a
// layer leads nowhere.
func vigilOver(t *testing.T, workspaces string) *vigil {
	t.Helper()
	v := &vigil{t: t, opened: make(chan *os.File, 1)}
	go func() {
		for range 2000 {
			if all, _ := filepath.Glob(filepath.Join(workspaces, "*")); len(all) > 0 {
				path := filepath.Join(all[0], "alive")
				if err := syscall.Mkfifo(path, 0o600); err == nil {
					f, _ := os.Open(path) // waits for a writer
					v.opened <- f
				}
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return v
}

func (v *vigil) begins() {
	v.t.Helper()
	select {
	case v.pipe = <-v.opened:
	case <-time.After(20 * time.Second):
		v.t.Fatal("the program does not begin")
	}
}

// ends fails unless no program holds the pipe any more.
func (v *vigil) ends() {
	v.t.Helper()
	defer v.pipe.Close()
	end := make(chan error, 1)
	go func() {
		_, err := v.pipe.Read(make([]byte, 1))
		end <- err
	}()
	select {
	case err := <-end:
		if !errors.Is(err, io.EOF) {
			v.t.Errorf("reading what the program holds open: %v, want its end", err)
		}
	case <-time.After(2 * time.Second):
		v.t.Error("the program that was running is still there")
	}
}

// A child process that keeps or floods the streams that it inherits does not affect
// the protocol.
func TestChildCannotWriteToTheProtocol(t *testing.T) {
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "loud", "echo to one; echo to two >&2\nfor fd in 3 4 5 6 7 8 9; do eval \"echo to $fd >&$fd\" 2>/dev/null; done\ntrue\n")
	cmd := exec.Command("packs-mcp", "try", packs, "--yes")
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("try = %v\n%s", err, out)
	}
	for fd := 3; fd < 10; fd++ {
		if strings.Contains(string(out), fmt.Sprintf("to %d", fd)) {
			t.Errorf("a run wrote to descriptor %d of the server", fd)
		}
	}
	if !strings.Contains(string(out), "to one") {
		t.Errorf("the run's own output is not there:\n%s", out)
	}
}

const prompt = "[o]nce  [c]hat  [d]eny, or Enter to see everything: "

// A person at a terminal is asked about each call, and each answer does what it
// says.
func TestTryOnATerminal(t *testing.T) {
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "walk", "echo it went; echo made > made.txt\n")
	s := screen.Start(t, env, dir, "try", packs)

	question := s.Until(prompt)
	for _, want := range []string{"Open the documents of pack walk?", "o  Once: this exact call", "c  Chat: use walk", "d  Deny"} {
		if !strings.Contains(question, want) {
			t.Errorf("the question does not have %q:\n%s", want, question)
		}
	}
	if strings.Contains(question, "The words of the document.") {
		t.Error("the document is shown before it is allowed")
	}
	s.Enter("1\r") // asked again
	s.Until("That is none of the answers. Type o, c or d, and press Enter.")
	s.Until(prompt)
	s.Enter("yes\r")
	s.Until(prompt)
	s.Enter("O\r")
	s.Until("The words of the document.")

	s.Until("capability_packs_read_file")
	s.Until(prompt)
	s.Enter("deny\r")
	s.Until("denied: ")

	s.Until("Enable 1 tool of pack walk?")
	s.Until(prompt)
	s.Enter("c\r")
	s.Until("walk__go")

	question = s.Until(prompt)
	for _, want := range []string{"go.sh", "sandbox", "may read", "may change", "trust", "more details, with Enter"} {
		if !strings.Contains(question, want) {
			t.Errorf("the question about the run does not have %q:\n%s", want, question)
		}
	}
	if n := strings.Count(question, "\n"); n > 30 {
		t.Errorf("the question about the run has %d lines:\n%s", n, question)
	}
	for _, everything := range []string{"\r", "s\r"} {
		s.Enter(everything)
		question = s.Until(prompt)
		for _, want := range []string{"go.sh", "sandbox", "after 30 seconds at the latest", "digest"} {
			if !strings.Contains(question, want) {
				t.Errorf("everything about the run does not have %q:\n%s", want, question)
			}
		}
	}
	s.Enter("o\r")
	s.Until("it went")
	s.Until(prompt) // reading what the run wrote
	s.Enter("o\r")
	s.Until("and its chain verifies.")
	if code := s.Ended(); code != 0 {
		t.Errorf("try ended with status %d\n%s", code, s.Screen())
	}
	var decisions []string
	for _, e := range events(t, dir)["decision"] {
		decisions = append(decisions, fmt.Sprint(e["kind"], " ", e["decision"]))
	}
	if got, want := strings.Join(decisions, ", "), "list once, open once, read deny, enable chat, run once, read once"; got != want {
		t.Errorf("the log has the decisions %q, want %q", got, want)
	}
}

// After a denial, or leaving by the terminal's own means, nothing runs.
func TestTryDeniedOnATerminal(t *testing.T) {
	for name, leave := range map[string]string{"deny": "d\r", "end of input": "\x04"} {
		t.Run(name, func(t *testing.T) {
			dir, env := home(t)
			packs := filepath.Join(dir, "packs")
			plantPack(t, packs, "walk", "echo it went\n")
			s := screen.Start(t, env, dir, "try", packs)
			for range 3 { // open, read, enable
				s.Until(prompt)
				s.Enter(leave)
			}
			s.Until("and its chain verifies.")
			if code := s.Ended(); code != 0 {
				t.Errorf("try ended with status %d", code)
			}
			if strings.Contains(s.Screen(), "The words of the document.") {
				t.Error("the document was shown")
			}
			all := events(t, dir)
			if len(all["run.start"]) != 0 {
				t.Errorf("something ran: %v", all["run.start"])
			}
			for _, e := range all["decision"][1:] {
				if e["decision"] != "deny" {
					t.Errorf("the log has %v, want a denial", e)
				}
			}
		})
	}
}

// What was typed before a question was shown does not answer it, whether in whole
// lines, pasted together with an answer, or as the beginning of a line.
func TestTryDropsWhatWasTypedBefore(t *testing.T) {
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "walk", "echo it went\n")
	s := screen.Start(t, env, dir, "try", packs)
	s.Enter("o\ro\ro") // most likely before the program reads anything
	s.Until(prompt)
	s.Enter("\r") // an "o" before this would be an answer
	s.Until("digest")
	s.Until(prompt)
	s.Enter("d\ro\ro\ro") // the rest answers no question that was already shown
	s.Until("denied: ")
	for range 2 { // read, enable
		s.Until(prompt)
		s.Enter("d\r")
	}
	s.Until("and its chain verifies.")
	if code := s.Ended(); code != 0 {
		t.Errorf("try ended with status %d\n%s", code, s.Screen())
	}
	for _, e := range events(t, dir)["decision"][1:] {
		if e["decision"] != "deny" {
			t.Errorf("the log has %v, want a denial", e)
		}
	}
}

// Ctrl-C at a question ends the program at once, and allows nothing.
func TestTryInterrupted(t *testing.T) {
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "walk", "echo it went\n")
	s := screen.Start(t, env, dir, "try", packs)
	s.Until(prompt)
	s.Enter("\x03")
	s.Until("packs-mcp: stopped")
	if code := s.Ended(); code != 1 || strings.Contains(s.Screen(), "canceled") {
		t.Errorf("try ended with status %d, want 1\n%s", code, s.Screen())
	}
	all := events(t, dir)
	if len(all["run.start"]) != 0 || len(all["server.stop"]) != 1 {
		t.Errorf("the log has %v, want the server's end and no run", all)
	}
}

// Ctrl-C at a question about files ends the command at once, and nothing is written.
func TestStoppedQuestion(t *testing.T) {
	for name, args := range map[string][]string{
		"setup": {"setup", "claude-code"},
		"add":   {"add", "./from/walk", "--allow-unsigned"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, env := home(t)
			plantPack(t, filepath.Join(dir, "from"), "walk", "echo it went\n")
			before := paths(t, dir)
			s := screen.Start(t, env, dir, args...)
			s.Until("[y/N] ")
			s.Enter("\x03")
			s.Until("\r\npacks-mcp: stopped\r\n")
			if code := s.Ended(); code != 1 || strings.Contains(s.Screen(), "error:") {
				t.Errorf("the command ended with status %d, want 1\n%s", code, s.Screen())
			}
			for _, p := range paths(t, dir) {
				if !slices.Contains(before, p) && (strings.Contains(p, "claude") || strings.Contains(p, "walk")) {
					t.Errorf("%s was written", p)
				}
			}
		})
	}
}

// On a terminal, setup asks whether to write, and then about each permission separately.
func TestSetupAsks(t *testing.T) {
	dir, env := home(t)
	config, settings := filepath.Join(dir, ".claude.json"), filepath.Join(dir, ".claude", "settings.json")
	const write, permission = "Write this? [y/N] ", "Claude Code also asks before each call."
	setup := func(answers map[string]string, written bool) string {
		t.Helper()
		s := screen.Start(t, env, dir, "setup", "claude-code")
		for _, question := range []string{write, permission} {
			if answer, asked := answers[question]; asked {
				s.Until(question)
				if question == permission {
					s.Until("[y/N] ")
				}
				s.Enter(answer + "\r")
			}
		}
		if code := s.Ended(); code != 0 {
			t.Errorf("setup ended with status %d\n%s", code, s.Screen())
		}
		if _, err := os.Stat(config); written != (err == nil) {
			t.Errorf("after %v: %s: %v, want it written: %v", answers, config, err, written)
		}
		return s.Screen()
	}
	for _, no := range []string{"n", "", "yess"} {
		if got := setup(map[string]string{write: no}, false); !strings.Contains(got, "Nothing was written.") || strings.Contains(got, permission) || strings.Contains(got, "permissions.allow") {
			t.Errorf("after %q:\n%s", no, got)
		}
	}
	if got := setup(map[string]string{write: "y", permission: "no"}, true); !strings.Contains(got, `+ permissions.allow: "mcp__packs"`) || !strings.Contains(got, "including one that a project defines") {
		t.Errorf("the permission is not shown before it is asked about:\n%s", got)
	}
	if _, err := os.Stat(settings); err == nil {
		t.Error("the permission was written after a no")
	}
	// What was already written is not asked about again.
	if got := setup(map[string]string{permission: "y"}, true); strings.Contains(got, write) {
		t.Errorf("asked about an entry that is there:\n%s", got)
	}
	if data, err := os.ReadFile(settings); err != nil || !strings.Contains(string(data), "mcp__packs") {
		t.Errorf("%s: %q, %v, want the permission in it", settings, data, err)
	}
	if got := setup(nil, true); strings.Contains(got, "[y/N]") {
		t.Errorf("asked about what is there:\n%s", got)
	}
	s := screen.Start(t, env, dir, "setup", "--undo")
	if code := s.Ended(); code != 0 {
		t.Errorf("setup --undo ended with status %d\n%s", code, s.Screen())
	}
	for _, file := range []string{config, settings} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is still there after --undo", file)
		}
	}
}

// What was typed before a command showed its question does not answer it.
func TestQuestionsDropWhatWasTypedBefore(t *testing.T) {
	for name, args := range map[string][]string{
		"setup":         {"setup", "claude-code"},
		"add":           {"add", "./from/walk", "--allow-unsigned"},
		"update":        {"update"},
		"update --undo": {"update", "--undo", "walk"},
		"sync --prune":  {"sync", "--prune"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, env := home(t)
			from := filepath.Join(dir, "from")
			plantPack(t, from, "walk", "echo it went\n")
			if args[0] == "update" || args[0] == "sync" {
				s := screen.Start(t, env, dir, "add", "./from/walk", "--allow-unsigned", "--yes")
				if code := s.Ended(); code != 0 {
					t.Fatalf("add ended with status %d\n%s", code, s.Screen())
				}
				plantPack(t, from, "walk", "echo it went far\n")
				switch name {
				case "update --undo":
					s := screen.Start(t, env, dir, "update", "--yes")
					if code := s.Ended(); code != 0 {
						t.Fatalf("update ended with status %d\n%s", code, s.Screen())
					}
				case "sync --prune":
					for _, p := range paths(t, dir) {
						if filepath.Base(p) == "packs.lock.json" {
							if err := os.WriteFile(p, []byte(`{"version": 1}`), 0o600); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
			}
			before := paths(t, dir)
			s := screen.Start(t, env, dir, args...)
			s.Enter("y\ry\ry") // most likely before the program reads anything
			s.Until("[y/N] ")
			s.Enter("\r") // a "y" before this would be a yes
			s.Until("Nothing was ")
			if code := s.Ended(); code != 0 {
				t.Errorf("the command ended with status %d\n%s", code, s.Screen())
			}
			for _, p := range paths(t, dir) {
				if !slices.Contains(before, p) && (strings.Contains(p, "claude") || strings.Contains(p, "walk")) {
					t.Errorf("%s was written", p)
				}
			}
		})
	}
}

// paths returns all paths below a folder.
func paths(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		all = append(all, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
