// Command packs-mcp serves capability packs to MCP clients, and lets a person view them,
// try them, and see what ran.
//
// This package has the commands that serve and that describe the program. Package
// internal/service wires the parts together. The other commands are in packages below
// internal, one for each subject.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/drill"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == drill.Arg { // doctor --attack started this program under confinement
		os.Exit(drill.Main(os.Stdin, os.Stdout, os.Args[2:]))
	}
	collectLater(os.Getenv("GOGC"), time.Now())
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// The first signal ends the program cleanly; the next one at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program; it returns the exit status: 0 done, 1 failed, 2
// misuse.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{&cli.Env{Environ: places.WithHome(environ, runtime.GOOS), Stdin: stdin, Stdout: stdout, Stderr: stderr, Version: versionName()}}
	return a.Run(ctx, a.command(), args)
}
