//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/screen"
)

const onceOrDeny = "[o]nce  [d]eny: "

// decisions returns the decisions of a run's log, each as "kind decision channel".
func decisions(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	for _, e := range events(t, dir)["decision"] {
		all = append(all, fmt.Sprint(e["kind"], " ", e["decision"], " ", e["channel"]))
	}
	return strings.Join(all, ", ")
}

// The person at the terminal sees the call and answers it, and the log has the
// terminal's answer.
func TestCallOnATerminal(t *testing.T) {
	for _, tt := range []struct {
		answer, log string
		code        int
		runs        bool
	}{
		{"o\r", "enable once command, run once terminal", 0, true},
		{"d\r", "enable once command, run deny terminal", 1, false},
		{"\x04", "enable once command, run deny command", 1, false},
	} {
		t.Run(fmt.Sprintf("%q", tt.answer), func(t *testing.T) {
			dir, env := home(t)
			plantPack(t, dir, "walk", "echo it went\n")
			s := screen.Start(t, env, dir, "call", "./walk", "go")
			question := s.Until(onceOrDeny)
			if !strings.Contains(question, "Run tool go of pack walk?") || !strings.Contains(question, "./go.sh") {
				t.Errorf("the question is:\n%s", question)
			}
			s.Enter("nonsense\r")
			s.Until("That is none of the answers.")
			s.Until(onceOrDeny)
			s.Enter("\r")
			s.Until("Exactly what runs")
			s.Until(onceOrDeny)
			s.Enter(tt.answer)
			if code := s.Ended(); code != tt.code {
				t.Errorf("call ended with status %d, want %d\n%s", code, tt.code, s.Screen())
			}
			if ran := len(events(t, dir)["run.end"]) == 1; ran != tt.runs || strings.Contains(s.Screen(), "it went") != tt.runs {
				t.Errorf("it ran: %v, want %v\n%s", ran, tt.runs, s.Screen())
			}
			if got := decisions(t, dir); got != tt.log {
				t.Errorf("the log has %q, want %q", got, tt.log)
			}
		})
	}
}

// Ctrl-C ends a run with everything that it started, and the log has its end.
func TestCallInterrupted(t *testing.T) {
	dir, env := home(t)
	plantPack(t, dir, "walk", "echo began >&2; sleep 600 & echo $! >pid; sleep 600\n")
	s := screen.Start(t, env, dir, "call", "./walk", "go", "--yes")
	began := false
	for deadline := time.Now().Add(time.Minute); !began; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the run does not begin\n%s", s.Screen())
		}
		found, err := filepath.Glob(filepath.Join(dir, "state", "workspaces", "*", "pid"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			if data, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(data), "\n") {
				began = true
			}
		}
	}
	s.Enter("\x03")
	s.Until("packs-mcp: stopped")
	if code := s.Ended(); code != 1 || strings.Contains(s.Screen(), "canceled") {
		t.Errorf("call ended with status %d, want 1\n%s", code, s.Screen())
	}
	all := events(t, dir)
	if len(all["run.end"]) != 1 || len(all["server.stop"]) != 1 {
		t.Errorf("the log has %v, want the end of the run and of the server", all)
	}
}

// If a tool needs context that nobody gave, the question asks for it.
func TestCallAsksForContext(t *testing.T) {
	for _, tt := range []struct {
		typed, says string
		code        int
	}{
		{"https://example.com/x\r", "looked at https://example.com/x", 0},
		{"\r", "denied: nobody answered in the terminal", 1},
	} {
		t.Run(fmt.Sprintf("%q", tt.typed), func(t *testing.T) {
			dir, env := home(t)
			plantPack(t, dir, "walk", "")
			tools := `[{"name": "go", "description": "Goes.", "inputSchema": {"type": "object", "properties": {}}, "command": ["echo", "looked at", "{{context.url}}"]}]`
			if err := os.WriteFile(filepath.Join(dir, "walk", "tools.json"), []byte(tools), 0o644); err != nil {
				t.Fatal(err)
			}
			s := screen.Start(t, env, dir, "call", "./walk", "go")
			s.Until(onceOrDeny)
			s.Enter("o\r")
			s.Until("(context_url): ")
			s.Enter(tt.typed)
			s.Until(tt.says)
			if code := s.Ended(); code != tt.code {
				t.Errorf("call ended with status %d, want %d\n%s", code, tt.code, s.Screen())
			}
		})
	}
}

// For a screen reader the question consists of sentences, and has the same answers.
func TestCallInSentences(t *testing.T) {
	dir, env := home(t)
	plantPack(t, dir, "walk", "echo it went\n")
	s := screen.Start(t, env, dir, "call", "./walk", "go", "--plain")
	const prompt = "Type o to allow once, or d to deny: "
	question := s.Until(prompt)
	s.Enter("\r")
	question += s.Until(prompt)
	for _, want := range []string{"It would run this command: ./go.sh", "Note: no network.", "What it may read and change:"} {
		if !strings.Contains(question, want) {
			t.Errorf("the question does not have %q:\n%s", want, question)
		}
	}
	if strings.Contains(question, "----") || strings.Contains(question, "\x1b[") {
		t.Errorf("something is drawn:\n%s", question)
	}
	s.Enter("o\r")
	s.Until("it went")
	if code := s.Ended(); code != 0 {
		t.Errorf("call ended with status %d\n%s", code, s.Screen())
	}
}
