package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/service"
	"github.com/packs-mcp/packs-mcp/examples"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

func (a *app) serveFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&a.Flags.Attach, "attach", nil, "attach the pack with this `ID`, or all, while this server runs (repeatable)")
	f.StringVar(&a.Flags.Workspace, "workspace", "", "the `DIR` that runs write to (default: a new one for each chat)")
	f.StringVar(&a.Flags.HTTP, "http", "", "serve over HTTP on this `ADDR` (host:port; without a host, 127.0.0.1) instead of standard input and output")
	f.StringVar(&a.Flags.PublicURL, "public-url", "", "the `URL` that clients reach the HTTP server by, when not by its address")
	cli.ChoiceVar(cmd, &a.Flags.Policy, "policy", "", "how often calls ask: every-call, balanced or first-run (approval.policy in the configuration)", config.PolicyEveryCall, config.PolicyBalanced, config.PolicyFirstRun)
	f.BoolVar(&a.Flags.Bundled, "bundled", false, "also serve the example packs that come with the program")
	_ = cmd.MarkFlagDirname("workspace")
	_ = cmd.RegisterFlagCompletionFunc("attach", a.CompletePacks)
	_ = cmd.RegisterFlagCompletionFunc("http", cobra.FixedCompletions([]string{"127.0.0.1:8080"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("public-url", cobra.NoFileCompletions)
}

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [DIR...]",
		Short: "Serve packs to an MCP client on standard input and output, or to many over HTTP",
		Long: `Serve packs to an MCP client on standard input and output. Clients start this themselves;
it ends when the client closes its input. Messages for people go to standard error. A DIR is
the same as --packs DIR.

With --http it serves any number of clients over HTTP: Streamable HTTP at /mcp, the older
HTTP+SSE at /sse, and /healthz and /readyz. Every request needs a token: PACKS_MCP_TOKEN, or
http.token, http.tokens or an identity provider (http.oidc) in the configuration. Without any
of these, a new one is printed at the start.`,
		Example: `  packs-mcp serve --packs ~/packs
  PACKS_MCP_TOKEN=$(openssl rand -hex 16) packs-mcp serve --packs ~/packs --http 127.0.0.1:8080
  packs-mcp serve --attach incident-triage --project ~/src/shop`,
		ValidArgsFunction: cli.Folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Flags.Packs = append(a.Flags.Packs, args...)
			return a.serve(cmd.Context())
		},
	}
	a.PackFlags(cmd)
	a.serveFlags(cmd)
	return cmd
}

// firstAnswer is how long a server leaves the machine to its client before it
// watches the folders of packs, which scans them once more, opens its desk, and
// determines how programs are confined. An earlier call does the last two
// itself.
const firstAnswer = 250 * time.Millisecond

func (a *app) serve(ctx context.Context) (err error) {
	if a.Flags.Workspace != "" {
		if a.Flags.Workspace, err = filepath.Abs(a.Flags.Workspace); err != nil {
			return fmt.Errorf("finding the workspace: %w", err)
		}
	}
	// If a client no longer reads standard error, the next message there must
	// not kill the server and what it runs. While SIGPIPE is delivered to a
	// channel, such a write only fails.
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	defer signal.Stop(unread)
	out, err := claimStdout(a.Stdout)
	if err != nil {
		return err
	}
	cfg, logger, err := a.Load()
	if err != nil {
		return err
	}
	if err := keepPrivate(); err != nil {
		logger.Warn("other programs of this user may read the server's environment", "err", err)
	}
	who, made := cli.Credentials(cfg)
	logger = a.Logger(cfg.Log, service.TokensOf(who)...)
	var extra []packs.Root
	if a.Flags.Bundled {
		root, err := keptBundle(cfg)
		if err != nil {
			return err
		}
		extra = append(extra, root)
	}
	s, err := service.Start(ctx, a.Env, cfg, logger, who, service.Place{Project: cli.Project(cfg)}, extra...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	defer s.Unwatch(logger)
	var preparing sync.WaitGroup
	preparing.Go(func() { s.Prepare(ctx, logger) })
	defer preparing.Wait()
	if cfg.HTTP.Addr != "" {
		return a.serveHTTP(ctx, cfg, logger, s, who, made)
	}
	logger.Info("serving on standard input and output", "packs", len(s.Library.Catalog(ctx).Attached()), "version", a.Version)
	if cli.IsTerminal(a.Stdin) {
		fmt.Fprintln(a.Stderr, "packs-mcp waits for an MCP client on standard input. To see packs work here, run: packs-mcp try")
	}
	tended := make(chan struct{})
	tending, stop := context.WithCancel(ctx)
	begun := time.AfterFunc(firstAnswer, func() {
		defer close(tended)
		s.Watch(logger)
		s.OpenDesk()
		s.ReportSandbox(ctx, cfg, logger)
		service.Tend(tending, cfg, logger)
	})
	defer func() {
		stop()
		if !begun.Stop() {
			<-tended
		}
	}()
	return wire.ServeStdio(ctx, s.Server, a.Stdin, out)
}

// keptBundle writes the example packs to a folder in the user's files, unless they are
// there. The folder stays the same between starts, so that "always" answers hold, and
// changes its name in a version with other examples. Anyone who can write to the user's
// files can write there, so its packs get no more trust than the user's.
func keptBundle(cfg *config.Config) (packs.Root, error) {
	version, err := examples.Digest()
	if err != nil {
		return packs.Root{}, err
	}
	dir := filepath.Join(filepath.Dir(cfg.Paths.Packs), "bundled", version)
	if err := examples.Extract(dir); err != nil {
		return packs.Root{}, cli.WithHint(err, "remove the folder, and it is made anew")
	}
	return packs.Root{Dir: dir, Source: "bundled", Trust: packs.TrustUser, AttachAll: true}, nil
}
