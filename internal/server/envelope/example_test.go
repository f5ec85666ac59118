package envelope_test

import (
	"fmt"
	"os"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/server/envelope"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

func Example() {
	folder, err := os.MkdirTemp("", "workspaces")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	spaces, err := workspace.NewSet(workspace.Place{Each: folder})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer spaces.Close()
	run := envelope.Run{Allows: tools.Policy{}.Allows, Secrets: redact.New("hunter2-hunter2"), Workspace: spaces.First()}
	e := run.Envelope("run-1", &sandbox.Result{
		Cause: sandbox.CauseExit, ExitCode: 3, Duration: time.Second,
		Stdout: sandbox.Capture{Head: []byte("the key is hunter2-hunter2\n"), Total: 27},
	}, sandbox.Limits{})
	fmt.Printf("%t %d %q %s\n", e.OK, e.ExitCode, *e.Stdout, e.Code())
	// Output:
	// false 3 "the key is [redacted]\n" command_failed
}
