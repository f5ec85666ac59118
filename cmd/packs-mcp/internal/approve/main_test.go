package approve

import (
	"context"
	"io"
	"os"
	"os/signal"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// Other tests run the commands of this package as a separate program, with real
// streams, a real terminal and a real exit status.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"packs-mcp": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		code := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}})
}

// run runs a command line, as the program does, and returns its status.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	env := &cli.Env{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	return env.Run(ctx, env.Root(Commands(env)...), args)
}
