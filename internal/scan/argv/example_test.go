package argv_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/scan/argv"
)

func Example() {
	program, own := argv.Started("env", []string{"A=1", "bash", "-c", "rm -rf build"})
	args := []string{"A=1", "bash", "-c", "rm -rf build"}[own:]
	fmt.Println(program, args[argv.CodeArgument(program, args)])
	fmt.Println(argv.Downloads("npx", []string{"prettier"}), argv.Downloads("npx", []string{"prettier@3.1.0"}))
	fmt.Println(argv.Changes("git", []string{"push"}), argv.LeadsOut("/etc/passwd", false), argv.IsLoader("LD_PRELOAD"))
	fmt.Println(argv.WideTools("Read, Bash(git status:*), Bash(sudo *)"))
	// Output:
	// bash rm -rf build
	// true false
	// true true true
	// Bash(sudo *)
}
