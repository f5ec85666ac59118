package auditcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/audit/chains"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// exported is what export --json prints.
type exported struct {
	Dir         string   `json:"dir"`
	Chains      int      `json:"chains"`
	Checkpoints int      `json:"checkpoints"`
	Last        string   `json:"last"` // the hash of the last checkpoint
	Keys        []string `json:"keys"`
}

// pruned is what prune --json prints.
type pruned struct {
	Chains  int   `json:"chains"`  // from which something was removed
	Entries int64 `json:"entries"` // that were removed
	Whole   int   `json:"whole"`   // chains of which nothing is left
}

// chainVerdict is what verify --json prints of an export.
type chainVerdict struct {
	OK          bool           `json:"ok"`
	Chains      []chainState   `json:"chains"`
	Entries     int            `json:"entries"`
	From        *time.Time     `json:"from,omitempty"`
	To          *time.Time     `json:"to,omitempty"`
	Checkpoints int            `json:"checkpoints"`
	Last        string         `json:"last"`    // the hash of the last checkpoint
	Keys        []string       `json:"keys"`    // that have signed
	Trusted     bool           `json:"trusted"` // these keys were not only the export's own word
	Problems    []auditProblem `json:"problems"`
	More        int            `json:"more,omitempty"`
	Runs        []auditRun     `json:"runs"`
}

type chainState struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
	Last    int64  `json:"last"`
	Pruned  int64  `json:"pruned,omitempty"` // up to this entry it may have been removed
	Covered int64  `json:"covered"`          // the newest entry that a checkpoint names
}

func (a *app) exportCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the audit log of all replicas to files",
		Long: `Write the audit log that the replicas of a server have in their store to files: a chain for
each start of a server, and the checkpoints over all of them. DIR must be empty or not there.
"audit verify DIR" checks it without the store, and "audit show --export DIR" prints it.`,
		Example: "  packs-mcp audit export /var/backups/audit-2026-01-31",
		Args:    cli.Needs(1, 1, "a folder"),

		ValidArgsFunction: cli.First(cli.Folders),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.auditExport(cmd.Context(), args[0], asJSON) },
	}
	a.ConfigFlag(cmd)
	cli.JSONFlag[exported](a.Env, cmd, &asJSON)
	return cmd
}

func (a *app) pruneCommand() *cobra.Command {
	var before string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prune DIR --before WHEN",
		Short: "Remove old entries from the store that are in a verified export",
		Long: `Remove entries from the store that are older than WHEN and in the export DIR, if that verifies. The
heads of all chains stay in a checkpoint, which says up to which entry each chain may be
missing: what is left still verifies, and nothing else can be missing unnoticed. Keep DIR as
long as you must be able to show what was removed.`,
		Example: "  packs-mcp audit prune /var/backups/audit-2026-01-31 --before 90d",
		Args:    cli.Needs(1, 1, "the folder of an export"),

		ValidArgsFunction: cli.First(cli.Folders),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.auditPrune(cmd.Context(), args[0], before, asJSON)
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "remove entries older than `WHEN`: a time ago (90d, 12w), a date, or a date and time")
	_ = cmd.RegisterFlagCompletionFunc("before", cobra.FixedCompletions([]string{"30d", "90d", "365d"}, cobra.ShellCompDirectiveNoFileComp))
	a.ConfigFlag(cmd)
	cli.JSONFlag[pruned](a.Env, cmd, &asJSON)
	return cmd
}

// inStore returns the configuration if it names a store that has the log.
func (a *app) inStore() (*config.Config, error) {
	cfg, _, err := a.Load()
	if err != nil {
		return nil, err
	}
	if cfg.Store.URL == "" {
		return nil, cli.WithHint(fmt.Errorf("the audit log is in files: %q and those beside it", cfg.Audit.Path), "copy them; packs-mcp audit verify checks them. This command is for servers that share a store (store.url)")
	}
	return cfg, nil
}

func (a *app) auditExport(ctx context.Context, dir string, asJSON bool) error {
	cfg, err := a.inStore()
	if err != nil {
		return err
	}
	s, keys, err := cli.SharedLog(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	progress := a.Progress("exporting the log")
	done, err := chains.Export(ctx, s, keys, dir, time.Now())
	progress.Close()
	switch {
	case errors.Is(err, fs.ErrExist):
		return cli.WithHint(fmt.Errorf("the folder %q is not empty", dir), "name a new one")
	case err != nil:
		return err
	case asJSON:
		return cli.PrintJSON(a.Stdout, exported{Dir: dir, Chains: done.Chains, Checkpoints: done.Checkpoints, Last: done.Last, Keys: keys.Public()})
	}
	out := a.Screen(a.Stdout)
	fmt.Fprintf(out, "exported %s and %s to %s\n", cli.Counted(done.Chains, "chain", "chains"), cli.Counted(done.Checkpoints, "checkpoint", "checkpoints"), safetext.Line(dir))
	fmt.Fprintf(out, "last checkpoint: %s\n", done.Last)
	fmt.Fprintf(out, "Note it elsewhere, and check: packs-mcp audit verify %s\n", safetext.Quote(dir))
	return nil
}

func (a *app) auditPrune(ctx context.Context, dir, text string, asJSON bool) error {
	now := time.Now()
	before, ok := parseSince(text, now)
	if !ok {
		return &cli.UsageError{Err: fmt.Errorf("--before is %q", text), Hint: `give a time ago, as in 90d or 12w, or a date, as in 2026-01-31`}
	}
	cfg, err := a.inStore()
	if err != nil {
		return err
	}
	s, keys, err := cli.SharedLog(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	done, err := chains.Prune(ctx, s, keys, dir, before, now)
	switch {
	case errors.Is(err, chains.ErrUnverified):
		return cli.WithHint(err, "packs-mcp audit verify %s says what is wrong with the export", safetext.Quote(dir))
	case err != nil:
		return err
	case asJSON:
		return cli.PrintJSON(a.Stdout, pruned{done.Chains, done.Entries, done.Whole})
	}
	fmt.Fprintf(a.Screen(a.Stdout), "removed %d entries of %s; the checkpoints keep their heads\n", done.Entries, cli.Counted(done.Chains, "chain", "chains"))
	return nil
}

// verifyExport checks an export. keys are the public keys that may have signed it; if
// there are none, those of the configuration's store count, and else what the export
// says of itself.
func (a *app) verifyExport(dir string, keys []string, noted string, asJSON bool) error {
	trusted := make([]string, 0, len(keys))
	for _, text := range keys {
		key, err := chains.ParseKey(text)
		if err != nil {
			return &cli.UsageError{Err: fmt.Errorf("--key is %q: %w", text, err), Hint: "packs-mcp audit export names the keys, and so does packs-mcp audit verify"}
		}
		trusted = append(trusted, key)
	}
	if len(trusted) == 0 {
		cfg, _, err := a.Load()
		if err != nil {
			return err
		}
		if trusted, err = cli.LogKeys(cfg); err != nil {
			return err
		}
	}
	progress := a.Progress("checking the log")
	r, err := chains.Verify(dir, chains.Check{Keys: trusted, Noted: noted})
	progress.Close()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return cli.WithHint(fmt.Errorf("%q is not an export of the audit log", dir), "packs-mcp audit export writes one")
		}
		return err
	}
	if asJSON {
		err = cli.PrintJSON(a.Stdout, chainVerdictOf(r))
	} else {
		a.printChainVerdict(dir, &r)
	}
	if err == nil && !r.OK {
		err = cli.WithHint(fmt.Errorf("the audit log in %q is not as it was written", dir), "keep it as it is; find out who could write to it, or to the store")
	}
	return err
}

func chainVerdictOf(r chains.Report) chainVerdict {
	v := chainVerdict{
		OK: r.OK, Chains: []chainState{}, Entries: r.Entries, Checkpoints: r.Checkpoints, Last: r.Last, Keys: append([]string{}, r.Keys...), Trusted: r.Trusted,
		Problems: problemsOf(r.Problems), More: r.More, Runs: runsOf(r.Runs),
	}
	if r.Entries > 0 {
		v.From, v.To = &r.From, &r.To
	}
	for _, c := range r.Chains {
		v.Chains = append(v.Chains, chainState(c))
	}
	return v
}

// printChainVerdict prints the result in words.
func (a *app) printChainVerdict(dir string, r *chains.Report) {
	say := a.sayer()
	if r.OK {
		say("ok: %s of %s in %s", cli.Counted(r.Entries, "entry", "entries"), cli.Counted(len(r.Chains), "chain", "chains"), dir)
	} else {
		say("not ok: %s of %s in %s; %s", cli.Counted(r.Entries, "intact entry", "intact entries"), cli.Counted(len(r.Chains), "chain", "chains"), dir,
			cli.Counted(len(r.Problems)+r.More, "problem", "problems"))
	}
	for _, p := range r.Problems {
		say("%s", p)
	}
	if r.More > 0 {
		say("and %s", cli.Counted(r.More, "more problem", "more problems"))
	}
	if r.Entries > 0 {
		say("from: %s", localTime(r.From))
		say("to: %s", localTime(r.To))
	}
	for _, c := range r.Chains {
		if c.Last > c.Covered {
			say("note: %s: no checkpoint names what comes after entry %d, so nobody could notice if more had been there", filepath.Base(c.Name), c.Covered)
		}
	}
	if r.Checkpoints > 0 {
		say("last checkpoint: %s %s", localTime(r.LastTime), r.Last)
	}
	for _, k := range r.Keys {
		if r.Trusted {
			say("signed with: %s", k)
		} else {
			say("signed with: %s, which only the export vouches for; compare it, or give it with --key", k)
		}
	}
	for _, run := range r.Runs {
		say("note: %s", noteOf(run))
	}
}

// entriesOf returns the entries of an export as [audit.Read] returns those of files.
func entriesOf(dir string) func(yield func(audit.Line, error) bool) {
	return func(yield func(audit.Line, error) bool) {
		all, err := chains.Entries(dir)
		if err != nil {
			yield(audit.Line{}, err)
			return
		}
		for _, line := range all {
			if !yield(line, nil) {
				return
			}
		}
	}
}
