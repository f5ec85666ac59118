package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/auditcmd"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/service"
	"github.com/packs-mcp/packs-mcp/examples"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/server/tour"
)

func (a *app) tryCommand() *cobra.Command {
	var yes bool
	var pack string
	cmd := &cobra.Command{
		Use:   "try [DIR]",
		Short: "See packs work: a client in this terminal, with real approvals",
		Long: `Visit packs the way a model does, in two minutes: names and descriptions first, then a
document, a file, the tools, and a run. A real MCP client talks to the same server that
clients start, and every call is put to you. Without DIR it uses example packs that come with
the program, whose tool reads the git repository that you are in; with DIR, the packs there.
Without a terminal to ask on, the examples are approved by themselves, and calls of other packs
are denied unless you say --yes.

The exit status is 0 when everything that you allowed worked, and 1 when something failed or
nobody could be asked.`,
		Example: `  packs-mcp try
  packs-mcp try ~/packs --pack incident-triage
  packs-mcp try ./my-pack --yes`,
		Args: cli.Needs(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			}
			return a.try(cmd.Context(), dir, pack, yes)
		},
		ValidArgsFunction: cli.First(cli.Folders),
	}
	a.PackFlags(cmd)
	a.PlainFlag(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "approve every call without asking")
	cmd.Flags().StringVar(&pack, "pack", "", "the `ID` of the pack to visit (default: the first with tools)")
	_ = cmd.RegisterFlagCompletionFunc("pack", a.completeVisits)
	return cmd
}

// completeVisits offers the packs that try would find in its folder to the shell.
func (a *app) completeVisits(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		ids, err := examples.Names()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	a.Flags.Packs = args[:1]
	return a.CompletePacks(cmd, nil, begun)
}

func (a *app) try(ctx context.Context, dir, pack string, yes bool) (err error) {
	if a.Flags.LogLevel == "" {
		a.Flags.LogLevel = "warn" // the person wants to read the tour, and not the log
	}
	if info, err := os.Stat(dir); dir != "" && (err != nil || !info.IsDir()) {
		return cli.MissingFolder(dir, "name a folder that holds packs, or none to see the examples: packs-mcp try")
	}
	cfg, logger, err := a.Load()
	if err != nil {
		return err
	}
	interactive := cli.IsTerminal(a.Stdin) && cli.IsTerminal(a.Stdout)
	g := &terminal{out: a.Screen(a.Stdout), approve: yes, ask: interactive}
	if g.ask {
		g.keys = cli.NewKeyboard(ctx, a.Stdin)
	}
	g.begin()
	opts := tour.Options{Version: a.Version, Pack: pack}
	root := packs.Root{Dir: dir, Source: "flag", Trust: packs.TrustUser, AttachAll: true, Named: true}
	if dir == "" {
		var remove func()
		if root, remove, err = bundled(); err != nil {
			return err
		}
		defer remove()
		if !interactive && !yes {
			g.approve = true
			g.Tell("There is no terminal to ask on, so the calls of the bundled examples are approved automatically.")
		}
		if cli.Project(cfg) == "" {
			project, remove, err := emptyRepository()
			if err != nil {
				return err
			}
			defer remove()
			cfg.Project = project
			g.Tell("This folder is in no git repository, so the tool will look at an empty one, made for this.")
		}
		if pack == "" {
			opts.Pack, opts.Tools = "git-helper", []string{"status"}
		}
	} else if root.Dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("finding %q: %w", dir, err)
	}
	if len(a.Flags.Packs) == 0 {
		cfg.Packs = nil // only the packs that are tried
	}
	who, _ := cli.Credentials(cfg)
	s, err := service.Start(ctx, a.Env, cfg, logger, who, service.Place{Here: queue.ChannelElicitation, Project: cli.Project(cfg)}, root)
	if err != nil {
		return err
	}
	g.pending = s.Gate.Pending
	began, err := lastSeq(cfg)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	if opts.Pack, err = a.toVisit(ctx, s, cfg, root, opts.Pack); err != nil {
		return errors.Join(err, s.Close())
	}
	tourErr := a.take(ctx, s, g, opts)
	if err := errors.Join(tourErr, s.Close()); err != nil {
		if errors.Is(err, tour.ErrNoPacks) {
			return a.noPacks(ctx, s, root.Dir)
		}
		return err
	}
	if err := a.epilogue(cfg, g, began); err != nil {
		return err
	}
	return g.end()
}

// toVisit returns the id of the pack to visit: the named one, or the first below root
// with tools, or else the first below root. The user's own packs may be attached too,
// but are not visited. If no pack with readable tools can be visited, and a pack of
// root has tools that cannot be read, the error says what is wrong with them.
func (a *app) toVisit(ctx context.Context, s *service.Service, cfg *config.Config, root packs.Root, named string) (string, error) {
	catalog := s.Library.Catalog(ctx)
	var ids []string
	var unread *packs.Pack
	first := ""
	files := cli.ToolFiles(cfg)
	for _, p := range catalog.Attached() {
		if p.Root != root.Dir {
			continue
		}
		ids = append(ids, p.ID)
		has, problems, err := files.Look(p)
		switch {
		case has && first == "":
			first = p.ID
		case !has && unread == nil && (err != nil || diag.HasErrors(problems)):
			unread = p
		}
	}
	if len(ids) == 0 {
		return "", a.noPacks(ctx, s, root.Dir)
	}
	if named != "" {
		p, err := catalog.LookupAttached(named)
		if err != nil {
			return "", cli.WithHint(err, "%s", cli.Meant(named, ids, "the packs here are: "+strings.Join(ids, ", ")))
		}
		_, err = a.toolsOf(cfg, p)
		return p.ID, err
	}
	if first == "" && unread != nil {
		_, err := a.toolsOf(cfg, unread)
		return unread.ID, err
	}
	return cmp.Or(first, ids[0]), nil
}

// bundled writes the example packs into a new folder.
func bundled() (packs.Root, func(), error) {
	folder, err := temp.New("")
	if err != nil {
		return packs.Root{}, nil, fmt.Errorf("making a folder for the example packs: %w", err)
	}
	remove := func() { _ = folder.Remove() }
	if err := examples.Extract(folder.Path); err != nil {
		remove()
		return packs.Root{}, nil, err
	}
	return packs.Root{Dir: folder.Path, Source: "bundled", Trust: packs.TrustBundled, AttachAll: true}, remove, nil
}

// emptyRepository makes a git repository without commits in a new folder, with a file
// to look at. It writes the files itself, since git may not be installed.
func emptyRepository() (dir string, remove func(), err error) {
	folder, err := temp.New("")
	if err != nil {
		return "", nil, fmt.Errorf("making a folder to look at: %w", err)
	}
	remove = func() { _ = folder.Remove() }
	for _, name := range []string{"objects", "refs"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(folder.Path, ".git", name), 0o700))
	}
	for name, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n",
		"hello.md": "A file for packs-mcp try to find.\n",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder.Path, filepath.FromSlash(name)), []byte(text), 0o600))
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("making a folder to look at: %w", err)
	}
	return folder.Path, remove, nil
}

// take connects a client to the server and runs the tour.
func (a *app) take(ctx context.Context, s *service.Service, g tour.Guide, o tour.Options) error {
	in, out, ended := s.Connect(ctx)
	err := tour.Take(ctx, in, out, g, o)
	return errors.Join(err, ended())
}

// noPacks returns an error that says what is missing in a folder without packs.
func (a *app) noPacks(ctx context.Context, s *service.Service, dir string) error {
	for _, d := range s.Library.Catalog(ctx).Problems() {
		a.Screen(a.Stderr).Problem("", d)
	}
	for _, p := range s.Library.Catalog(ctx).All() {
		for _, d := range p.Problems {
			a.Screen(a.Stderr).Problem("", d)
		}
	}
	return cli.WithHint(fmt.Errorf("there are no packs to try in %q", dir),
		"a pack is a folder with a SKILL.md that begins with --- and has name: and description:")
}

// lastSeq returns the number of the last event before the tour.
func lastSeq(cfg *config.Config) (int64, error) {
	var last int64
	for line, err := range audit.Read(cfg.Audit.Path) {
		if _, ok := errors.AsType[*audit.LineError](err); ok {
			continue
		}
		if err != nil {
			return 0, err
		}
		last = line.Entry.Seq
	}
	return last, nil
}

// epilogue shows what the tour left in the audit log.
func (a *app) epilogue(cfg *config.Config, g *terminal, began int64) error {
	g.heading("The audit log of all this")
	out := a.Screen(a.Stdout)
	for line, err := range audit.Read(cfg.Audit.Path) {
		if _, ok := errors.AsType[*audit.LineError](err); ok {
			continue
		}
		if err != nil {
			return err
		}
		if line.Entry.Seq >= began {
			if err := auditcmd.PrintEntry(out, line.Entry); err != nil {
				return err
			}
		}
	}
	report, err := audit.Verify(cfg.Audit.Path)
	if err != nil {
		return err
	}
	g.Tell("")
	if !report.OK {
		g.Tell(fmt.Sprintf("It is in %s, and its chain does NOT verify; see: packs-mcp audit verify", cfg.Audit.Path))
		g.failed = append(g.failed, "the audit log")
		return nil
	}
	g.Tell(fmt.Sprintf("It is in %s, and its chain verifies.", cfg.Audit.Path))
	return nil
}
