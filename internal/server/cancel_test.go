package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// ends is a pack with a program that ends when it is told to, and one that does not.
const ends = `
-- ends/SKILL.md --
---
name: ends
description: Ends, or not.
---
-- ends/heeds.sh --
#!/bin/sh
trap 'echo yes > heeded; exit 7' TERM
echo $$ > pid.new && mv pid.new pid
while :; do sleep 0.02; done
-- ends/ignores.sh --
#!/bin/sh
trap '' TERM
echo $$ > pid.new && mv pid.new pid
while :; do sleep 0.02; done
`

// unasked returns a server whose user allows everything beforehand, and whose
// programs get this long to end when they are told to.
func unasked(grace time.Duration) option {
	return func(s *setup) {
		s.gate.Rules = []rules.Rule{{Effect: rules.Allow, Kinds: []string{"exec"}, Where: "config.yaml:1"}}
		s.gate.Runner = runner.New(runner.Options{
			Grace: grace, Skip: []sandbox.Level{sandbox.LevelPartial, sandbox.LevelFull},
		})
	}
}

// tokenZero returns the _meta of a request that asks for progress.
func (l *lane) tokenZero() string {
	return strings.Replace(l.fill("$META"), "{", `{"progressToken":0,`, 1)
}

// silent reads what comes until the answer to a new request, and makes sure that it
// is progress with the token 0, or the withdrawal of a question, and no answer.
func (l *lane) silent() {
	l.t.Helper()
	l.next++
	l.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{$META}}`, l.next))
	for {
		m := l.receive()
		switch {
		case m["id"] == float64(l.next):
			return
		case m["method"] == "notifications/progress":
		default:
			l.t.Errorf("after the cancellation came %v", m)
		}
	}
}

// progress waits for progress with the token 0 that contains some words.
func (l *lane) progress(words string) {
	l.t.Helper()
	for last := 0.0; ; {
		m := l.receive()
		p, _ := m["params"].(map[string]any)
		n, _ := p["progress"].(float64)
		if m["method"] != "notifications/progress" || p["progressToken"] != 0.0 || n <= last {
			l.t.Fatalf("%v came, want progress with the token 0 and more than %v", m, last)
		}
		if last = n; strings.Contains(p["message"].(string), words) {
			return
		}
	}
}

// The program of a cancelled call ends at once if it reacts to SIGTERM, and by
// SIGKILL when its grace period is over. The call is not answered. Cancelling it
// again, or too late, has no effect. The request's id is 0, and so is its progress
// token.
func TestCancelEveryLane(t *testing.T) {
	needShell(t)
	const grace = 300 * time.Millisecond
	for _, c := range []struct {
		program string
		grace   time.Duration // 0: the default
	}{{"heeds", 0}, {"ignores", grace}} {
		t.Run(c.program, func(t *testing.T) {
			onEveryLane(t, ends, func(t *testing.T, l *lane) {
				l.initialize(`{}`)
				l.say(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"capability_packs_exec_best_effort","arguments":{"pack_id":"ends","command":"./` + c.program + `.sh"},` +
					l.tokenZero() + `}}`)
				pid := l.w.made("pid")
				l.progress("the program has been running")
				began := time.Now()
				l.cancel("0")
				l.w.awaitLog("run.end")
				took := time.Since(began)
				if alive(t, pid) {
					t.Error("the program of a cancelled call still runs")
				}
				end := l.w.entries()[len(l.w.entries())-1]
				switch {
				case end.Cause != "cancelled":
					t.Errorf("the log says that the run ended by %q, want cancelled", end.Cause)
				case c.grace == 0 && (end.ExitCode == nil || *end.ExitCode != 7 || l.w.made("heeded") != "yes"):
					t.Errorf("a program that heeds SIGTERM ended with %+v after %s, want its own status at once", end, took)
				case c.grace != 0 && (took < c.grace || end.Signal == ""):
					t.Errorf("a program that ignores SIGTERM ended with %+v after %s, want a signal after %s", end, took, c.grace)
				}
				if !l.own {
					l.cancel("0")
				}
				l.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{$META,"requestId":0}}`)()
				l.silent()
				if got := len(l.w.entries()); got != 3 {
					t.Errorf("the log has %d lines, want a decision, a start and an end", got)
				}
			}, unasked(c.grace), tellOften)
		})
	}
}

// The question of a cancelled call is withdrawn everywhere, and a later answer allows
// nothing.
func TestCancelQuestionEveryLane(t *testing.T) {
	for _, capabilities := range []string{`{}`, `{"elicitation":{}}`} {
		t.Run(capabilities, func(t *testing.T) {
			onEveryLane(t, triage, func(t *testing.T, l *lane) {
				elicits := capabilities != `{}`
				if l.modern && elicits {
					return // here the question is the answer, and nothing waits
				}
				l.initialize(capabilities)
				l.say(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"capability_packs_open_docs","arguments":{"pack_id":"triage"},` +
					l.tokenZero() + `}}`)
				p := l.w.pending(1)[0]
				var ask any
				if elicits {
					for m := l.receive(); ; m = l.receive() {
						if m["method"] == "elicitation/create" {
							ask = m["id"]
							break
						}
					}
				} else {
					l.progress("waiting for you")
				}
				l.cancel("0")
				l.w.pending(0)
				for withdrawn := !elicits; !withdrawn; {
					m := l.receive()
					params, _ := m["params"].(map[string]any)
					switch {
					case m["method"] == "notifications/cancelled" && params["requestId"] == ask:
						withdrawn = true
					case m["method"] != "notifications/progress":
						t.Fatalf("%v came, want the question withdrawn", m)
					}
				}
				if _, err := l.w.gate().Decide(p.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err == nil {
					t.Error("a call that was cancelled can still be allowed")
				}
				if elicits {
					l.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"action":"accept","content":{"decision":"once"}}}`, ask))()
				}
				l.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{$META,"requestId":0}}`)()
				l.silent()
				l.w.awaitLog("decision")
				if e := l.w.entries(); len(e) != 1 || e[0].Decision != "deny" {
					t.Errorf("the log has %+v, want one denial", e)
				}
			}, everywhere(20*time.Second), tellOften)
		})
	}
}

// If a client's connection ends while a person is asked, nothing starts for it,
// neither by a later answer nor by anything else. On stdio, a call that the page is
// to answer goes on for a while, marked as one whose client is gone.
func TestLeaveWhileAsked(t *testing.T) {
	needShell(t)
	for _, capabilities := range []string{`{}`, `{"elicitation":{}}`} {
		t.Run(capabilities, func(t *testing.T) {
			onEveryLane(t, hold, func(t *testing.T, l *lane) {
				if l.modern && capabilities != `{}` {
					return // here the question is the answer, and nothing waits
				}
				l.initialize(capabilities)
				l.say(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"capability_packs_exec_best_effort","arguments":{"pack_id":"hold","command":"./hold.sh"},$META}}`)
				p := l.w.pending(1)[0]
				l.leave()
				lasts := l.web == nil && capabilities == `{}` // a client that asks by itself has cancelled
				if lasts {
					for !l.w.pending(1)[0].Gone {
						time.Sleep(time.Millisecond)
					}
				} else {
					l.w.pending(0)
				}
				for _, d := range []queue.Decision{queue.Once, queue.Chat} {
					for _, channel := range []string{queue.ChannelPage, queue.ChannelTerminal} {
						if _, err := l.w.gate().Decide(p.Code, queue.Verdict{Decision: d, Channel: channel}); err == nil {
							t.Errorf("a call whose client is gone can be allowed by %q, %s", d, channel)
						}
					}
				}
				if lasts {
					l.w.decide(p.Code, queue.Deny)
				}
				l.w.awaitLog("decision")
				for _, e := range l.w.entries() {
					if e.Run != "" || e.Decision != "deny" {
						t.Errorf("the log has %+v, want one denial", e)
					}
				}
			}, everywhere(20*time.Second))
		})
	}
}

// An answer that arrives just as the connection ends starts nothing that remains.
func TestLeaveWhileAnswered(t *testing.T) {
	needShell(t)
	for range 5 {
		onEveryLane(t, hold, func(t *testing.T, l *lane) {
			if l.web == nil {
				return // here runs have some seconds to end
			}
			l.initialize(`{}`)
			l.say(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"capability_packs_exec_best_effort","arguments":{"pack_id":"hold","command":"./hold.sh"},$META}}`)
			p := l.w.pending(1)[0]
			left := make(chan struct{})
			go func() {
				defer close(left)
				l.leave()
			}()
			_, _ = l.w.gate().Decide(p.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage})
			<-left
			l.w.pending(0)
			l.w.awaitLog("decision")
			// If the answer started a run, that run has ended.
			starts, ends := 0, 0
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				starts, ends = 0, 0
				for _, e := range l.w.entries() {
					switch e.Event {
					case "run.start":
						starts++
					case "run.end":
						ends++
						if e.Cause != "cancelled" {
							t.Fatalf("the run ended by %q, want cancelled", e.Cause)
						}
					}
				}
				if starts == ends || time.Now().After(deadline) {
					break
				}
			}
			if starts != ends {
				t.Errorf("the log has %d starts and %d ends of runs", starts, ends)
			}
		}, everywhere(20*time.Second))
	}
}

// Long runs report progress until their answer, which comes last.
func TestProgressEveryLane(t *testing.T) {
	needShell(t)
	onEveryLane(t, hold, func(t *testing.T, l *lane) {
		l.initialize(`{}`)
		l.say(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"capability_packs_exec_best_effort","arguments":{"pack_id":"hold","command":"./hold.sh"},` +
			l.tokenZero() + `}}`)
		l.w.made("pid")
		l.progress("the program has been running")
		for _, c := range l.w.srv.chats.All() {
			if _, err := os.Stat(filepath.Join(c.Workspaces.First().Dir, "pid")); err == nil {
				if err := os.WriteFile(filepath.Join(c.Workspaces.First().Dir, "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		for m := l.receive(); ; m = l.receive() {
			if m["method"] == "notifications/progress" {
				continue
			}
			if r, _ := m["result"].(map[string]any); m["id"] != 0.0 || said(m) != "result" || r["structuredContent"].(map[string]any)["stdout"] != "let go\n" {
				t.Errorf("the answer = %v", m)
			}
			break
		}
		l.serves("the answer")
	}, unasked(0), tellOften)
}
