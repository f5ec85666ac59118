package plan_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A tool and its arguments become a run that the gate can decide about. Nobody is
// asked, and nothing runs.
func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		log.Fatal(err)
	}
	pack := &packs.Pack{ID: "greeter", Dir: filepath.Join(dir, "greeter"), Trust: packs.TrustUser}
	workspace := filepath.Join(dir, "workspace")
	for _, folder := range []string{pack.Dir, workspace} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			log.Fatal(err)
		}
	}
	set, problems := toolsjson.Parse("tools.json", []byte(`{"tools": [{
		"name": "greet", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
		"command": ["echo", "hello", "{{name}}"]}]}`), tools.Limits{})
	if set == nil {
		log.Fatal(problems)
	}
	greet := set.Lookup("greet")
	args, problem := strictjson.Parse([]byte(`{"name": "Ada"}`))
	if problem != nil {
		log.Fatal(problem)
	}
	values, err := greet.Check(args)
	if err != nil {
		log.Fatal(err)
	}

	planner, err := plan.New(plan.Options{Environ: os.Environ()})
	if err != nil {
		log.Fatal(err)
	}
	call := &plan.Call{Pack: pack, Tree: new(packfs.Tree), Workspace: workspace, OwnFolder: true}
	filled, err := planner.Expand(call, greet, values)
	if err != nil {
		log.Fatal(err)
	}
	planned, err := planner.Tool(context.Background(), call, greet, filled)
	if err != nil {
		log.Fatal(err)
	}
	run := planned.Run
	fmt.Println(run.Tool, run.Command.Program.Name, run.Command.Args)
	fmt.Println("in the workspace:", run.Command.Dir == workspace)
	fmt.Println("network:", run.Policy.Network)
	// Output:
	// greet echo [hello Ada]
	// in the workspace: true
	// network: none
}
