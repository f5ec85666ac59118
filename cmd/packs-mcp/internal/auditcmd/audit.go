package auditcmd

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/config"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Show what was asked, decided and run",
		Example: "  packs-mcp audit show\n  packs-mcp audit verify",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var shown, followed auditQuery
	var export string
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the audit log, one line per event",
		Long: `Print the audit log, one line per event, from its oldest file on. Times are local. A run that
began and has no end is marked.`,
		Example: "  packs-mcp audit show --last 20\n" +
			"  packs-mcp audit show --pack git-helper --since 2h\n" +
			"  packs-mcp audit show --decision deny --since 2026-01-31\n" +
			"  packs-mcp audit show --json | jq 'select(.event == \"run.end\")'",
		Args: cli.Misuse(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.auditShow(&shown, export) },
	}
	show.Flags().StringVar(&export, "export", "", "the log of all replicas that \"audit export\" wrote to `DIR`")
	_ = show.MarkFlagDirname("export")
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
	var keys []string
	var noted string
	verify := &cobra.Command{
		Use:   "verify [DIR]",
		Short: "Check that nothing in the audit log was changed, dropped or reordered",
		Long: `Check that nothing in the audit log was changed, dropped or reordered. The status is 0 when
the log is whole, and 1 when it is not. A line that a crash tore, and a run that has no end, are named, and
are not a failure. Note the last hash elsewhere: a person who can write the file can also write a new one.

With the folder of an export it checks the log of all replicas, without the store: each line,
the seal of each block, and that nothing is missing that a checkpoint names. The signatures must
be of the key in the configuration (store.key), or of --key; --noted is the hash of a checkpoint
that you noted elsewhere, and that must be there. With DIR, --json prints other members.`,
		Example: "  packs-mcp audit verify\n  packs-mcp audit verify /var/backups/audit-2026-01-31",
		Args:    cli.Misuse(cobra.MaximumNArgs(1)),

		ValidArgsFunction: cli.First(cli.Folders),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.verifyExport(args[0], keys, noted, verifyJSON)
			}
			if len(keys) > 0 || noted != "" {
				return &cli.UsageError{Err: errors.New("--key and --noted are for the folder of an export"), Hint: "name it: packs-mcp audit verify DIR"}
			}
			return a.auditVerify(verifyJSON)
		},
	}
	verify.Flags().StringArrayVar(&keys, "key", nil, "a public `KEY` that replicas may sign with (repeatable)")
	verify.Flags().StringVar(&noted, "noted", "", "the `HASH` of a checkpoint that must be there")
	for _, flag := range []string{"key", "noted"} {
		_ = verify.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	cli.JSONFlag[verdict](a.Env, verify, &verifyJSON)
	for _, c := range []*cobra.Command{show, follow, verify} {
		a.ConfigFlag(c)
	}
	cmd.AddCommand(show, follow, verify, a.exportCommand(), a.pruneCommand())
	return cmd
}

// errInStore says where the log of replicas is.
var errInStore = errors.New("the audit log is in the store that replicas share")

func (a *app) auditPath() (string, error) {
	cfg, _, err := a.Load()
	if err != nil {
		return "", err
	}
	return a.logFile(cfg)
}

// logFile returns the file of the log, or an error if the log is in a store.
func (a *app) logFile(cfg *config.Config) (string, error) {
	if cfg.Store.URL != "" {
		return "", cli.WithHint(errInStore, "packs-mcp audit export DIR writes it to files; audit verify DIR and audit show --export DIR read them")
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
