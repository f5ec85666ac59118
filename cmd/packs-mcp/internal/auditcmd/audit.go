package auditcmd

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Look at what was asked, decided and run",
		Example: "  packs-mcp audit show\n  packs-mcp audit verify",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var shown, followed auditQuery
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the audit log, a line an event",
		Long: `Print the audit log, a line an event, from its oldest file on. Times are local. A run that
began and has no end is marked.`,
		Example: "  packs-mcp audit show --last 20\n" +
			"  packs-mcp audit show --pack git-helper --since 2h\n" +
			"  packs-mcp audit show --decision deny --since 2026-01-31\n" +
			"  packs-mcp audit show --json | jq 'select(.event == \"run.end\")'",
		Args: cli.Misuse(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.auditShow(&shown) },
	}
	shown.flags(a, show, 0, "only the last `N` events")
	follow := &cobra.Command{
		Use:   "follow",
		Short: "Print the last events of the audit log, and then each new one",
		Long: `Print the last events of the audit log, and then each new one, until you stop it with
Ctrl-C. It goes on when the log is renamed, and waits for a log that is not there yet.`,
		Example: "  packs-mcp audit follow\n  packs-mcp audit follow --decision deny -n 0",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.auditFollow(cmd.Context(), &followed) },
	}
	followed.flags(a, follow, 10, "begin with the last `N` events")
	var verifyJSON bool
	verify := &cobra.Command{
		Use:   "verify",
		Short: "Check that nothing in the audit log was changed, dropped or reordered",
		Long: `Check that nothing in the audit log was changed, dropped or reordered. The status is 0 when
the log is whole, and 1 when it is not. A line that a crash tore, and a run that has no end, are named, and
are not a failure. Note the last hash elsewhere: whoever can write the file can also write a new one.`,
		Example: "  packs-mcp audit verify",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return a.auditVerify(verifyJSON) },
	}
	cli.JSONFlag[verdict](a.Env, verify, &verifyJSON)
	for _, c := range []*cobra.Command{show, follow, verify} {
		a.ConfigFlag(c)
	}
	cmd.AddCommand(show, follow, verify)
	return cmd
}

func (a *app) auditPath() (string, error) {
	cfg, _, err := a.Load()
	if err != nil {
		return "", err
	}
	return cfg.Audit.Path, nil
}

// noLog explains a missing log.
func noLog(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return cli.WithHint(fmt.Errorf("there is no audit log at %q", path), "nothing was served yet, or audit.path in the configuration names another file")
	}
	return err
}
