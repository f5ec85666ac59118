package approve

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/launch"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

func (a *app) openCommand() *cobra.Command {
	var pid int
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open the approval page in your browser",
		Long: `Open the approval page of a running server in your browser. Of several servers it is the
first with a call that waits, else the newest. Where no browser can be opened, the file that
leads to the page is named; it is for you alone, and works once, for two minutes.`,
		Example: "  packs-mcp approvals open\n  packs-mcp approvals open --server 4711",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.openPage(cmd.Context(), pid) },
	}
	cmd.Flags().IntVar(&pid, "server", 0, "the `PID` of the server (packs-mcp approvals list --json has it)")
	_ = cmd.RegisterFlagCompletionFunc("server", a.completeServers)
	return cmd
}

// completeServers offers the pids of the running servers to the shell.
func (a *app) completeServers(cmd *cobra.Command, _ []string, _ string) (pids []string, _ cobra.ShellCompDirective) {
	a.Stderr = io.Discard // the shell would take a warning for a pid
	s, err := a.running(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, one := range slices.Concat(s.open, s.pageOnly) {
		pids = append(pids, fmt.Sprintf("%d\t%s", one.PID, cli.OneLine(one.Project, 60)))
	}
	return pids, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) openPage(ctx context.Context, pid int) error {
	all, err := a.running(ctx)
	if err != nil {
		return err
	}
	if len(all.open)+len(all.pageOnly) == 0 {
		return all.nobody()
	}
	s := a.whichServer(ctx, all, pid)
	if s == nil {
		return cli.WithHint(fmt.Errorf("no server of yours has the pid %d", pid), "leave --server out, or take a pid of: packs-mcp approvals list --json")
	}
	file, err := s.OpenPage(ctx)
	if err != nil {
		return fmt.Errorf("opening the approval page of %s: %w", place(s), err)
	}
	if err := launch.Browser(a.Environ, file); err != nil {
		fmt.Fprintf(a.Stdout, "No browser could be opened here (%s).\n", safetext.Line(err.Error()))
		fmt.Fprintf(a.Stdout, "Open this file in a browser of this user; it works once, for two minutes:\n%s\n", safetext.Line(file))
		return nil
	}
	fmt.Fprintf(a.Stdout, "The approval page of %s opens in your browser.\n", place(s))
	fmt.Fprintf(a.Stdout, "If it does not, open this file there; it works once, for two minutes:\n%s\n", safetext.Line(file))
	return nil
}

// whichServer chooses the server whose page a person means: the one with the pid
// or, without a pid, the first with an open question, else the newest. The calls
// of a server with only a page are not known, so it may still be chosen if no
// other server has a question.
func (a *app) whichServer(ctx context.Context, all servers, pid int) *terminal.Server {
	every := slices.Concat(all.open, all.pageOnly)
	if pid != 0 {
		for _, s := range every {
			if s.PID == pid {
				return s
			}
		}
		return nil
	}
	newest := every[len(every)-1]
	if len(every) == 1 {
		return newest
	}
	for _, w := range callsOf(a.queues(ctx, &all)) {
		if w.Answered == "" {
			return w.server
		}
	}
	return newest
}
