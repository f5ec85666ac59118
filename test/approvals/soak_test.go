//go:build unix

package approvals_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// busyRules allow some calls of many servers without a person.
const busyRules = `rules:
  - allow: {pack: triage, kind: [open, enable]}
  - allow: {pack: triage, tool: greet}
`

// server returns the announced server of a client.
func (c *client) server() *terminal.Server {
	c.w.t.Helper()
	var server *terminal.Server
	c.w.until("the server is announced", func() bool {
		servers, _ := c.w.found()
		i := slices.IndexFunc(servers, func(s *terminal.Server) bool { return s.PID == c.cmd.Process.Pid })
		if i >= 0 {
			server = servers[i]
		}
		return i >= 0
	})
	return server
}

// clerk answers the calls of one server until the context ends: it denies what says "deny",
// always allows what says "keep", leaves what says "command" to the command, and allows
// everything else once. Without a command, the server may be killed at any time.
func clerk(ctx context.Context, t *testing.T, s *terminal.Server, command func(code string)) {
	done := make(map[string]bool)
	for calls := range s.Watch(ctx) {
		for _, call := range calls {
			if done[call.Code] || call.Answered != "" {
				continue
			}
			done[call.Code] = true
			d := control.Decision{Code: call.Code, Decision: "once"}
			switch {
			case strings.Contains(call.Card.Command, "deny-"):
				d.Decision = "deny"
			case strings.Contains(call.Card.Command, "keep-"), strings.Contains(call.Title, "Run tool look"):
				d.Decision = "always"
			case strings.Contains(call.Title, "Run tool send"):
				command(call.Code)
				continue
			}
			_, err := s.Decide(ctx, d)
			refusal, refused := errors.AsType[*terminal.RefusedError](err)
			if refused && d.Decision == "always" && strings.HasSuffix(refusal.Message, "an answer to another call covers it") {
				continue // several calls are the same, and so are those of other servers
			}
			if err != nil && ctx.Err() == nil && (refused || command != nil) {
				t.Errorf("Decide(%+v) = %v", d, err)
			}
		}
	}
}

// echo returns a command that the model wrote.
func echo(word string) (string, object) {
	return execTool, object{"pack_id": "triage", "command": "echo", "args": []string{word}}
}

func triageTool(tool string) (string, object) {
	return callTool, object{"pack_id": "triage", "tool": tool, "arguments": object{}}
}

// keptWords returns the commands that have a grant; kept is the number of all grants.
func (w *world) keptWords() (words []string, kept int) {
	w.t.Helper()
	var listed struct {
		Grants []struct {
			ID, Tool string
			Argv     []string
		}
	}
	if err := json.Unmarshal([]byte(w.ok("approvals", "grants", "--json")), &listed); err != nil {
		w.t.Fatal(err)
	}
	ids := make(map[string]bool)
	for _, g := range listed.Grants {
		if ids[g.ID] {
			w.t.Errorf("two grants have the id %s", g.ID)
		}
		ids[g.ID] = true
		if len(g.Argv) > 0 {
			words = append(words, g.Argv[len(g.Argv)-1])
		}
	}
	slices.Sort(words)
	return words, len(listed.Grants)
}

// Ten servers share the grants and the log. APPROVALS_SOAK is the number of calls.
func TestTenServers(t *testing.T) {
	const servers = 10
	calls := number(t, "APPROVALS_SOAK", 200)
	w := newWorld(t, triage)
	w.put("home/config.yaml", busyRules)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		mu       sync.Mutex
		returned []string // ids of runs
		keep     []string // commands with an "always" answer
		files    int      // runs that left a file
		clients  sync.WaitGroup
		clerks   sync.WaitGroup
	)
	var all []*client
	for range servers {
		all = append(all, w.connect(nil))
	}
	for i, c := range all {
		s := c.server()
		clients.Go(func() {
			clerks.Go(func() {
				clerk(ctx, t, s, func(code string) {
					if _, stderr, status := w.command("approvals", "approve", code); status != 0 {
						t.Errorf("approvals approve %s: %s", code, stderr)
					}
				})
			})
			if o := c.tool(enable, object{"pack_id": "triage"}); o.code != "" {
				t.Errorf("enabling = %v", o.content)
			}
			for j := range calls / servers {
				word, leaves := fmt.Sprintf("keep-%d-%d", i, j/8), false
				var o *outcome
				code := ""
				switch j % 8 {
				case 0:
					o = c.tool(openDocs, object{"pack_id": "triage"})
				case 1:
					o = c.tool(readFile, object{"pack_id": "triage", "path": "docs/steps.md"})
				case 2:
					o, leaves = c.tool(greet("Ada")), true
				case 3: // one grant that several people give at once
					o, leaves = c.tool(triageTool("look")), true
				case 4:
					o = c.tool(echo(word))
				case 5:
					o, code = c.tool(echo(fmt.Sprintf("deny-%d-%d", i, j))), "denied"
				case 6:
					o = c.tool(echo(word)) // again, allowed by the grant
				case 7:
					o, leaves = c.tool(triageTool("send")), true
				}
				if o.code != code {
					t.Errorf("call %d of server %d = %v, want the error %q", j, i, o.content, code)
					continue
				}
				mu.Lock()
				if run, ok := o.content["run_id"].(string); ok {
					returned = append(returned, run)
				}
				if leaves {
					files++
				}
				if j%8 == 4 {
					keep = append(keep, word)
				}
				mu.Unlock()
			}
			c.close()
		})
	}
	clients.Wait()
	cancel()
	clerks.Wait()

	r, err := audit.Verify(w.log())
	if err != nil || !r.OK || len(r.Problems) > 0 || len(r.Runs) > 0 {
		t.Errorf("Verify = %+v, %v, want no problem and no run without its end", r, err)
	}
	lines := make(map[string][]string) // :: run → its events
	asked := make(map[string]int)      // :: word → answers for always
	for _, e := range w.entries() {
		if e.Run != "" {
			lines[e.Run] = append(lines[e.Run], string(e.Event))
		}
		if e.Event == audit.EventDecision && e.Decision == "always" && e.Channel == "terminal" {
			var args struct{ Args []string }
			_ = json.Unmarshal([]byte(e.Args.String()), &args) // of other tools
			asked[strings.Join(args.Args, " ")]++
		}
	}
	if len(lines) != len(returned) {
		t.Errorf("the log has %d runs, the clients %d", len(lines), len(returned))
	}
	for _, run := range returned {
		if got := strings.Join(lines[run], " "); got != "decision run.start run.end" {
			t.Errorf("the log has of %s %q, want its decision, start and end", run, got)
		}
	}
	if got := len(w.runs()); got != files {
		t.Errorf("%d programs ran, want %d", got, files)
	}
	slices.Sort(keep)
	words, kept := w.keptWords()
	if !slices.Equal(words, keep) || kept != len(keep)+1 {
		t.Errorf("%d grants, of the commands %q; want one for a tool and %q", kept, words, keep)
		t.Logf("the grants: %s", w.ok("approvals", "grants", "--json"))
	}
	for _, word := range keep {
		if asked[word] != 1 {
			t.Errorf("%s was asked about %d times, want once", word, asked[word])
		}
	}
	t.Logf("%d calls: %d lines, %d runs, %d grants", calls, r.Entries, len(returned), kept)
}
