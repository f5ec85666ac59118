package gate_test

import (
	"context"
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// One call from the request to the run: the gate asks, the caller carries the
// question to a person and describes the same call again, and the answer, if it
// is a yes, becomes a permit for exactly that run.
func Example() {
	ctx := context.Background()
	g, err := gate.New(gate.Options{Runner: printer{}, Log: printer{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := func() call.Request {
		return call.Request{
			Caller:    call.Caller{Chat: "stdio-1", Client: "Example 1.0", CanAsk: true, ChatEnd: "until this client closes"},
			Kind:      call.KindExec,
			Method:    "capability_packs_exec_best_effort",
			Pack:      call.Pack{ID: "git-helper", Dir: "/packs/git-helper", Trust: call.TrustUser, Digest: "sha256:1c5d3f4e90ab"},
			Arguments: call.ParseArguments([]byte(`{"pack_id":"git-helper","command":"git","args":["status"]}`)),
			Run: &call.Run{Command: sandbox.Command{
				Program: program.Program{Name: "git", Path: "/usr/bin/git", Digest: "77aa01"},
				Args:    []string{"status"},
				Dir:     "/home/ada/site",
			}},
		}
	}

	_, question, err := g.Check(ctx, request(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(question.Form)
	for _, c := range question.Choices {
		fmt.Printf("[%s] %s\n", c.Value, c.Title)
	}

	permit, _, err := g.Check(ctx, request(), answers.FromForm(question.State, "accept", map[string]any{"decision": "once"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := permit.Run(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", result.Stdout.Bytes())

	// The answer was for one call.
	_, _, err = g.Check(ctx, request(), answers.FromForm(question.State, "accept", map[string]any{"decision": "once"}))
	fmt.Println(err)

	// Output:
	// `git status`
	// ▸ NO SANDBOX
	// ▸ Pack git-helper. All of it is below.
	//
	//     ▸ Run git status for pack git-helper?
	//     ▸ Once: this exact call, one time.
	//     ▸ This chat: this exact command in this folder, until this client closes.
	//     ▸ Deny: the call does not happen.
	//     ▸ asked by: a client that calls itself "Example 1.0"
	//     ▸ sandbox: none; it can do everything you can do, with your files and on the network
	//     ▸ stops: after 30 seconds at the latest
	//     ▸ program: "/usr/bin/git"
	//     ▸ argument 1: "status"
	//     ▸ folder: "/home/ada/site"
	//     ▸ pack: "/packs/git-helper"
	//     ▸ trust: yours, from a folder you named or own
	//     ▸ digest: 1c5d3f4e90ab
	//
	// [once] Once: this exact call
	// [chat] Chat: this exact command here
	// [deny] Deny
	// log: decision once
	// log: run.start
	// log: run.end
	// nothing to commit
	// log: decision deny
	// denied: the state was used before, or is too old
}

// A printer stands in for the runner and for the audit log, which are
// [runner.Runner] and [audit.Log].
type printer struct{}

func (printer) Probe(context.Context) sandbox.Report { return sandbox.Report{Level: sandbox.LevelNone} }

func (printer) Run(context.Context, sandbox.Policy, sandbox.Command) (*sandbox.Result, error) {
	return &sandbox.Result{Stdout: sandbox.Capture{Head: []byte("nothing to commit\n")}}, nil
}

func (printer) Append(e audit.Entry) error {
	fmt.Print("log: ", e.Event)
	if e.Decision != "" {
		fmt.Print(" ", e.Decision)
	}
	fmt.Println()
	return nil
}

func (p printer) AppendLazy(e audit.Entry) error { return p.Append(e) }

func (printer) Failures() int { return 0 }

func (printer) Layers(context.Context, []string) []sandbox.Layer { return nil }
