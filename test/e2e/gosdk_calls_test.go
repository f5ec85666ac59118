package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// Anything but a clear yes is a no: nothing runs, the model is told why, and it is logged.
func TestDenied(t *testing.T) {
	answer := func(r *mcp.ElicitResult, err error) answerer {
		return func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return r, err }
	}
	const byItself = "the client declined by itself, faster than a person can"
	for _, tc := range []struct {
		name     string
		versions []string
		answer   answerer
		reason   string
	}{
		{"deny", []string{v20251125, v20260728}, choose("deny"), "the person chose to deny"},
		{"decline", []string{v20251125, v20260728}, answer(&mcp.ElicitResult{Action: "decline"}, nil), byItself},
		{"cancel", []string{v20251125, v20260728}, answer(&mcp.ElicitResult{Action: "cancel"}, nil), byItself},
		// The newer client gives up then, and does not repeat the call.
		{"an error", []string{v20251125}, answer(nil, errors.New("the dialog crashed")), "the client could not show the question"},
	} {
		for _, version := range tc.versions {
			t.Run(tc.name+"/"+version, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				c := w.connect(version, choose("once"))
				c.list()
				c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "field-notes"})
				c.changed()
				c.list()
				c.answers(tc.answer)
				hint := "Nobody decided this. Tell the user: their client does not let them answer, and the configuration has no other channel. " +
					"With approval.channels: [elicitation, page, terminal] they can answer on a page or in a terminal."
				if tc.name == "deny" {
					hint = "Do not call again unless the user asks for it; say what you wanted to do and why, or go on without it."
				}
				check(t, "the denial", c.refused("field-notes__note", map[string]any{"file": "a", "text": "b"}), map[string]any{
					"code": "denied", "message": tc.reason, "hint": hint,
				})
				c.close()
				if files, err := os.ReadDir(w.workspace); err != nil || len(files) > 0 {
					t.Errorf("the workspace has %v, %v, want nothing", files, err)
				}
				entries := w.entries()
				last := entries[len(entries)-2]
				if last.Event != audit.EventDecision || last.Decision != "deny" || last.Reason != tc.reason || last.Channel != "elicitation" || last.Run != "" {
					t.Errorf("the last event = %+v, want the denial and no run", last)
				}
			})
		}
	}
}

// A client that cannot ask gets metadata; everything else is denied, with a hint for its
// user.
func TestClientThatCannotAsk(t *testing.T) {
	for _, version := range []string{v20251125, v20260728} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.connect(version, nil)
			c.list()
			if packs, _ := c.ok("capability_packs_list", nil)["packs"].([]any); len(packs) != 2 {
				t.Errorf("list = %v, want two packs", packs)
			}
			for tool, args := range map[string]map[string]any{
				"capability_packs_open_docs":        {"pack_id": "plain"},
				"capability_packs_read_file":        {"pack_id": "plain", "path": "SKILL.md"},
				"capability_packs_enable_tools":     {"pack_id": "field-notes"},
				"capability_packs_exec_best_effort": {"pack_id": "field-notes", "command": "./scripts/fail.sh"},
			} {
				e := c.refused(tool, args)
				hint, _ := e["hint"].(string)
				if e["code"] != "denied" || e["message"] != "this client cannot show questions, so nobody could be asked" ||
					!strings.Contains(hint, "does not support MCP elicitation") || !strings.Contains(hint, "packs-mcp try") {
					t.Errorf("CallTool(%q) = %v, want denied, and what the user can do", tool, e)
				}
			}
			c.close()
			for _, e := range w.entries() {
				if e.Decision == "once" && e.Kind != "list" || e.Event == audit.EventRunStart {
					t.Errorf("the log has %+v, want denials only", e)
				}
			}
		})
	}
}

// Cancelling a call ends the program that it started, and that program's children.
func TestCancelledRun(t *testing.T) {
	for _, over := range []transport{overStdio, overHTTP, overSSE} {
		for _, version := range []string{v20251125, v20260728} {
			t.Run(string(over)+"/"+version, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.over = over
				c := w.connect(version, choose("once"))
				c.list()
				c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "field-notes"})
				pipe := w.newPipe()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "field-notes__hold", Arguments: map[string]any{"pipe": pipe.name}})
					ended <- err
				}()
				pipe.wait(pipe.holding, "the program runs")
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("the cancelled call = %v, want %v", err, context.Canceled)
				}
				pipe.wait(pipe.gone, "the program and its child are gone")
				// The connection still works.
				if packs, _ := c.ok("capability_packs_list", nil)["packs"].([]any); len(packs) != 2 {
					t.Errorf("list after a cancelled call = %v, want two packs", packs)
				}
				c.close()
				if end := w.runEnd(); end.Cause != "cancelled" {
					t.Errorf("run.end = %+v, want cause cancelled", end)
				}
			})
		}
	}
}

// With the default settings, a program that ignores SIGTERM is killed five seconds after its
// call was cancelled.
func TestStubbornRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect(v20260728, choose("once"))
	pipe := w.newPipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "capability_packs_exec_best_effort", Arguments: map[string]any{
			"pack_id": "plain", "command": "sh", "args": []string{"-c", `trap "" TERM; exec 3>"$0"; echo holding >&3; sleep 600`, pipe.name},
		}})
		ended <- err
	}()
	pipe.wait(pipe.holding, "the program runs")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call = %v, want %v", err, context.Canceled)
	}
	pipe.wait(pipe.gone, "the program and its child are gone")
	c.close()
	if end := w.runEnd(); end.Cause != "cancelled" || end.Signal != "SIGKILL" || end.DurationMS < 5000 {
		t.Errorf("run.end has the cause %q, signal %q and %d ms, want cancelled, SIGKILL and 5,000 ms at least", end.Cause, end.Signal, end.DurationMS)
	}
}

// runEnd returns the only run.end entry of the log.
func (w *world) runEnd() audit.Entry {
	w.t.Helper()
	ends := slices.DeleteFunc(w.entries(), func(e audit.Entry) bool { return e.Event != audit.EventRunEnd })
	if len(ends) != 1 {
		w.t.Fatalf("the log has %d run.end, want one", len(ends))
	}
	return ends[0]
}

// A client that ends the server with a signal, as most do, ends its runs, and the log is
// intact.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect(v20251125, choose("once"))
	c.list()
	c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "field-notes"})
	pipe := w.newPipe()
	ended := make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "field-notes__hold", Arguments: map[string]any{"pipe": pipe.name}})
		ended <- err
	}()
	pipe.wait(pipe.holding, "the program runs")
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	pipe.wait(pipe.gone, "the program and its child are gone")
	<-ended
	_ = c.Close() // waits for the process
	if end := w.runEnd(); end.Cause != "cancelled" {
		t.Errorf("run.end = %+v, want cause cancelled", end)
	}
}

// A question whose call was cancelled is withdrawn, and a late answer starts nothing.
func TestCancelledQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open, withdrawn := make(chan struct{}), make(chan struct{})
	c := w.connect(v20251125, func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		close(open)
		select {
		case <-ctx.Done():
			close(withdrawn)
		case <-time.After(patience):
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}, nil
	})
	c.list()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "capability_packs_exec_best_effort", Arguments: map[string]any{
			"pack_id": "field-notes", "command": "./scripts/note.sh", "args": []string{"a", "b", "1"},
		}})
		ended <- err
	}()
	<-open
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call = %v, want %v", err, context.Canceled)
	}
	select {
	case <-withdrawn:
	case <-time.After(patience):
		t.Error("the question was not withdrawn")
	}
	c.close()
	entries := w.entries()
	if last := entries[len(entries)-2]; last.Decision != "deny" || last.Reason != "the call was cancelled" && last.Reason != "the call was cancelled while the question was open" {
		t.Errorf("the last event = %+v, want a denial since the call was cancelled", last)
	}
}

// Twenty calls at once: each is asked about once and gets its own answer and result, and the
// log is one intact chain.
func TestConcurrentCalls(t *testing.T) {
	const calls = 20
	for _, over := range []transport{overStdio, overHTTP, overSSE} {
		for _, version := range []string{v20251125, v20260728} {
			t.Run(string(over)+"/"+version, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.over = over
				c := w.connect(version, choose("once"))
				c.list()
				c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "field-notes"})
				c.changed()
				c.list()
				c.questions()
				// One person, who allows only the even ones.
				c.answers(func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					for i := 1; i < calls; i += 2 {
						if strings.Contains(p.Message, fmt.Sprintf(`"note-%d"`, i)) {
							return choose("deny")(ctx, p)
						}
					}
					return choose("once")(ctx, p)
				})
				var wg sync.WaitGroup
				for i := range calls {
					wg.Go(func() {
						file := fmt.Sprintf("note-%d", i)
						out, isError := c.call(t.Context(), "field-notes__note", map[string]any{"file": file, "text": "x"})
						if i%2 == 1 {
							if e, _ := out["error"].(map[string]any); !isError || e["code"] != "denied" {
								t.Errorf("%s = %v, want denied", file, out)
							}
							return
						}
						if want := fmt.Sprintf("{\"file\": %q, \"stars\": 3}\n", file); isError || out["stdout"] != want {
							t.Errorf("%s = %v, want stdout %q", file, out, want)
						}
					})
				}
				wg.Wait()
				if got := len(c.questions()); got != calls {
					t.Errorf("%d questions were asked, want %d", got, calls)
				}
				c.close()

				files, err := os.ReadDir(filepath.Join(w.workspace, "notes"))
				if err != nil || len(files) != calls/2 {
					t.Errorf("%d notes were written, %v, want %d", len(files), err, calls/2)
				}
				counts := make(map[string]int)
				for _, e := range w.entries() {
					if e.Kind == "run" {
						counts[string(e.Event)+e.Decision]++
					}
				}
				check(t, "the runs in the log", counts, map[string]int{
					"decisiononce": calls / 2, "decisiondeny": calls / 2, "run.start": calls / 2, "run.end": calls / 2, "changes": calls / 2,
				})
			})
		}
	}
}
