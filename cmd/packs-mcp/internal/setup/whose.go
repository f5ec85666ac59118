package setup

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/launch"
)

// otherProgram says what an entry starts, if that is not known to be packs-mcp. It is
// packs-mcp if it is the file that runs now, or if it answers "version" as packs-mcp
// does. Only with mayAsk may it be started for that; a program that a project's file
// names is never started.
func (a *app) otherProgram(ctx context.Context, entry any, mayAsk bool) string {
	argv := clients.Started(entry)
	switch {
	case argv == nil:
		return "which starts no program"
	case !clients.IsOurs(entry) && !isThisProgram(argv):
		return fmt.Sprintf("which starts %q, another program", argv[0])
	case len(argv) > 1 && argv[1] != "serve" && !strings.HasPrefix(argv[1], "-"):
		return fmt.Sprintf("which starts %q with %q, and no server", argv[0], argv[1])
	case isThisProgram(argv):
		return ""
	case !mayAsk:
		return fmt.Sprintf("which starts %q, and not this program", argv[0])
	}
	path, err := clients.Locate(argv[0])
	if err != nil {
		return fmt.Sprintf("and its program %q cannot be found", argv[0])
	}
	if !saysVersion(ctx, a.Environ, path) {
		return fmt.Sprintf("and its program %q does not say that it is packs-mcp", argv[0])
	}
	return ""
}

// isThisProgram reports whether a command is the file that runs now.
func isThisProgram(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	same, err := clients.IsThisProgram(argv[0])
	return err == nil && same
}

// versionTime is how long a program has to print its version, even on a busy machine.
const versionTime = 10 * time.Second

// saysVersion reports whether a program answers "version" as packs-mcp does.
func saysVersion(ctx context.Context, environ []string, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	p, err := launch.Piped(ctx, environ, []string{path, "version"})
	if err != nil {
		return false
	}
	const longest = 1 << 10
	line, _ := bufio.NewReader(io.LimitReader(p.Out, longest)).ReadString('\n')
	cancel() // no more output is needed
	_, _ = p.In.Close(), p.Wait()
	words := strings.Fields(line)
	return len(words) > 1 && words[0] == "packs-mcp"
}
