// Package service assembles a server with everything that it needs: the packs, the
// gate with its runner and log, the desk where a person answers, and the watcher of
// the folders. The commands serve, try, call and test share it as a [Service].
//
// It does not read flags or print: its caller passes the configuration and the
// logger, and connects clients to the server.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/caches"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/gate/runs"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/copies"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
	"github.com/packs-mcp/packs-mcp/internal/server"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/telemetry"
)

// A Service is a server with everything that it needs, ready to serve.
type Service struct {
	Server     *server.Server
	Gate       *gate.Gate
	Library    *packs.Library
	logger     *slog.Logger
	reporter   *reporter // logs what is wrong with the packs
	log        audit.Writer
	name       string // this process's name in the audit log
	require    sandbox.Level
	runner     *runner.Runner                        // the gate's; nil until the gate is open
	containers *containers                           // the gate's, for other places; nil as long as runner is
	copies     *copies.Store                         // the gate's
	caches     *caches.Store                         // the gate's
	shared     *store.Mirror                         // what replicas share; nil: nothing
	runs       *runs.Claims                          // nil as long as shared is
	chatID     func(credential string) string        // see [server.Options]; nil as long as shared is
	common     *store.Shelf                          // the same
	grants     grants.Store                          // the gate's; nil if no answer is kept
	ended      func(g grants.Grant, rev uint64) bool // whether an operator took an answer back for all replicas; the same
	logins     [][]byte                              // the keys of logins to the page that have begun; the same
	changes    *changes.Store                        // the runner's
	added      *cli.Added                            // what is known about packs from elsewhere
	telemetry  *telemetry.Sender
	desk       *lazyDesk // nil if the person is asked only in this terminal
	keeper     *keeper   // watches the folders of packs; nil until then
}

// A Place says where a service works.
type Place struct {
	// Here is the channel on which the person who started this program is asked, in
	// their terminal. There is then no other channel, and no answer is kept for
	// later. Empty: the Service has clients, and uses the configured channels.
	Here string
	// Project is the folder that tools can work in; empty: none.
	Project string
}

// Start assembles a service. The caller closes it.
func Start(ctx context.Context, a *cli.Env, cfg *config.Config, logger *slog.Logger, who []httpd.Credential, at Place, extra ...packs.Root) (_ *Service, err error) {
	s := &Service{name: cli.Writer(cfg), logger: logger}
	// A client waits for its first answer, so find the packs in parallel to
	// everything that does not need them.
	files := cli.ToolFiles(cfg)
	found := make(chan error, 1)
	go func() {
		var err error
		s.Library, err = a.Library(ctx, cfg, logger, extra...)
		giveBackMuch()
		found <- err
		if err == nil {
			warm(ctx, s.Library, files)
		}
	}()
	programs := new(program.Lookuper)
	err = s.openGate(ctx, a, cfg, logger, programs, who, at.Here)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeGate())
		}
	}()
	if err = cmp.Or(<-found, err); err != nil {
		return nil, err
	}
	s.reporter = &reporter{logger: logger, attach: a.Flags.Attach, withoutTool: func(c *packs.Catalog) (message, hint string) {
		return cli.SayWithoutTool(cfg, cli.WithoutTool(cfg, c))
	}}
	s.reporter.report(s.Library.Catalog(ctx))
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("looking for the working folder: %w", err)
	}
	var asking func(shown bool)
	if at.Here == "" {
		s.desk = newDesk(a, s, cfg, logger)
		asking = s.desk.asking
	}
	l, of := cfg.Limits, quotas(cfg, at.Here)
	s.Server, err = server.New(server.Options{
		RunsOf: of.runs, MemoryOf: of.memory,
		Version: a.Version, Library: s.Library, Gate: s.Gate, Logger: logger, Tools: files, Programs: programs, Elsewhere: s.containers.elsewhere,
		Workspaces: cfg.Paths.Workspaces, SharedChat: s.chatID, CommonChats: s.common, Workspace: a.Flags.Workspace, Project: at.Project,
		Dir: dir, Environ: a.Environ, Openings: openings(cfg), Own: cli.OwnFiles(cfg), Private: cli.SecretFiles(cfg), Tokens: TokensOf(who), AuditLog: cfg.Audit.Path, Mode: cfg.Mode, Context: cfg.Context, Dotted: cfg.ToolNames == config.Dotted, Skills: cfg.Expose == config.ExposeSkills, Cards: slices.Contains(cfg.Approval.Channels, config.ChannelApp), Asking: asking, From: s.added.From, Origin: s.added.Origin, Spans: s.telemetry.Tracer(),
		Limits: server.Limits{
			Request: int(l.Request), ReadPage: l.ReadPage, ReadPageMax: l.ReadPageMax, ReadFile: l.ReadFile,
			Frontmatter: int(l.Frontmatter), Description: l.Description, EnabledTools: l.EnabledTools, Runs: l.Runs, TimeoutMax: cfg.Sandbox.TimeoutMax,
			Together: sandbox.Together{Memory: cfg.Limits.MemoryTogether, Processors: cfg.Limits.Processors},
			Run: sandbox.Limits{
				Timeout: l.Timeout, CPU: l.CPU, Memory: l.Memory, Processes: l.Processes, OpenFiles: l.OpenFiles,
				FileSize: l.FileSize, Workspace: l.Workspace, Layer: l.Layer, LayerNames: l.LayerNames, Cache: l.Cache, CacheNames: l.CacheNames,
				Output: int(l.Output), OutputMerged: 2 * int(l.OutputMarkdown), OutputTotal: l.OutputTotal,
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return s, s.log.AppendLazy(audit.Entry{
		Event: audit.EventServerStart, Reason: "packs-mcp " + a.Version + " on " + runtime.GOOS,
	})
}

// openGate opens the log, and everything that decides about calls and runs programs.
// It does not need the packs. The caller calls closeGate, even after an error.
func (s *Service) openGate(ctx context.Context, a *cli.Env, cfg *config.Config, logger *slog.Logger, programs *program.Lookuper, who []httpd.Credential, here string) (err error) {
	s.log, err = cli.Log(ctx, cfg, s.name, logger)
	if err != nil {
		return err
	}
	s.require, err = sandbox.ParseLevel(cfg.Sandbox.Require)
	if err != nil {
		return err
	}
	if here == "" {
		s.telemetry = telemetry.Start(a.Environ, a.Version, logger)
	}
	s.copies = copies.Open(cfg.Paths.Copies, copies.Options{Pack: cfg.Limits.PackSize})
	s.caches = cli.CacheStore(cfg)
	s.changes = keepChanges(ctx, a, cfg, logger)
	machine := runner.Options{
		Lookuper: programs, Logger: logger, Changes: s.changes, CopyDir: copyDir(cfg),
		// As long as one run may take: by then another run has had its turn, or
		// others wait too.
		TurnWait:   cfg.Sandbox.TimeoutMax,
		ReserveDir: filepath.Dir(cfg.Audit.Path), Reserve: logReserve,
		Together: sandbox.Together{Memory: cfg.Limits.MemoryTogether, Processors: cfg.Limits.Processors},
	}
	s.runner, s.containers = runner.New(machine), openContainers(cfg, machine, logger)
	s.added = cli.NewAdded(cfg)
	asking := gate.Options{
		Runner: s.runner, Elsewhere: s.containers.runnerAt, Log: s.telemetry.Tracer().Recorder(s.log), Logger: logger, Server: s.name, Require: s.require,
		Policy: cfg.Approval.Policy, Prompts: cfg.Approval.Prompts, People: people(cfg, who), Rules: cfg.Rules, Approvers: cfg.Approvers, Giver: giver(cfg), Users: cfg.Roles.Use, Remote: here == "" && asksPersons(cfg), Channels: cfg.Approval.Channels,
		Copies: s.copies, Caches: s.caches, Scan: s.added.Scan,
		WaitingOf: quotas(cfg, here).waiting, Wait: cfg.Approval.Wait, Pending: cfg.Approval.Pending, FullArguments: cfg.Audit.FullArguments,
	}
	if here != "" {
		asking.Channels = []string{here}
	} else if err := s.share(ctx, cfg, &asking); err != nil {
		return err
	}
	if here == queue.ChannelTerminal {
		asking.Wait, asking.Pending = atTerminal, atTerminal
	}
	s.grants = asking.Grants
	if s.Gate, err = gate.New(asking); err != nil {
		return err
	}
	if s.runs != nil {
		s.runs.Watch(s.Gate.Cut)
	}
	if err := s.telemetry.Tracer().Questions(func() int { return len(s.Gate.Pending()) }); err != nil {
		logger.Warn("metrics: waiting questions are not counted", "err", err)
	}
	return nil
}

// limits are what the people of a server may have at the same time.
type limits struct{ waiting, runs, memory quota.Limits }

// quotas returns what people may have at the same time. Only a server over HTTP has more
// than one.
func quotas(cfg *config.Config, here string) limits {
	if here != "" || cfg.HTTP.Addr == "" {
		return limits{}
	}
	return limits{waiting: cfg.HTTP.WaitingOf, runs: cfg.HTTP.RunsOf, memory: cfg.HTTP.MemoryOf}
}

// share opens what replicas share, or else the answers of this user's own file, for a gate.
func (s *Service) share(ctx context.Context, cfg *config.Config, asking *gate.Options) (err error) {
	if s.shared, err = cli.Shared(ctx, cfg, asking.Logger); err != nil {
		return err
	}
	if s.shared == nil {
		asking.Grants = cli.GrantStore(cfg).Among(asking.People)
		return nil
	}
	keys, err := cli.SharedKeys(cfg)
	if err != nil {
		return err
	}
	shared := cli.SharedGrants(s.shared, asking.People)
	asking.Grants, asking.Ended, asking.Questions, asking.Keys = shared, shared.Ended, s.shared, keys.States()
	asking.SharedChats = cli.SharedChats(s.shared, asking.People)
	s.ended, s.logins = shared.Ended, keys.Derive("page logins v1")
	s.chatID, s.common = keys.Chat, s.shared.Shelf("c.", chatTime)
	s.runs, err = runs.Open(ctx, s.shared, runs.Options{Logger: asking.Logger, Keep: 2 * cfg.Approval.Pending})
	if err == nil {
		asking.Runs = s.runs
	}
	return err
}

// chatTime is how long a chat that no replica uses lasts: as long as one over HTTP that
// nobody uses.
const chatTime = time.Hour

// atTerminal is how long a question may wait for the person who started this program
// to be asked in their terminal. They can end it with Ctrl-C. Questions about tests
// wait for the runs before them.
const atTerminal = 24 * time.Hour

// keepChanges opens the store of changes for a server. It returns nil if the store
// cannot be opened: then runs can only read the user's folders.
func keepChanges(ctx context.Context, a *cli.Env, cfg *config.Config, logger *slog.Logger) *changes.Store {
	kept, err := a.ChangeStore(ctx, cfg, logger, nil)
	if err != nil {
		logger.Warn("runs cannot change your folders", "err", err, "hint", "mend the folder of the state, and start the server again")
		return nil
	}
	return kept
}

// copyDir returns where runs find copies of folders that can have no other
// layer: in the user's cache, since files can be cloned only within one file
// system. It is empty if the folder cannot be created; then the system's
// temporary folder is good enough.
func copyDir(cfg *config.Config) string {
	dir := filepath.Join(filepath.Dir(cfg.Paths.Copies), "layers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	return dir
}

// logReserve is how much of the audit log's disk runs leave free.
const logReserve = 64 << 20

// openings returns what the user opens to tools, in the form that the planner takes.
func openings(cfg *config.Config) []plan.Opening {
	all := make([]plan.Opening, len(cfg.Sandbox.Grants))
	for i, g := range cfg.Sandbox.Grants {
		all[i] = plan.Opening(g)
	}
	return all
}

// ReportSandbox determines how programs are confined here, and logs it. It also
// removes what killed servers left of their runs, and old workspaces.
func (s *Service) ReportSandbox(ctx context.Context, cfg *config.Config, logger *slog.Logger) {
	box := s.Gate.Sandbox(ctx)
	sweepWorkspaces(ctx, cfg, logger)
	if err := s.copies.Sweep(ctx); err != nil {
		logger.Warn("could not remove all leftovers of private copies", "err", err)
	}
	if err := s.caches.Sweep(ctx); err != nil {
		logger.Warn("could not remove all old caches of tools", "err", err)
	}
	var means, gaps []string
	for _, t := range box.Trials {
		if t.Level == box.Level && t.Problem == "" {
			means, gaps = t.Means, t.Gaps
		}
	}
	logger.Info("programs are confined", "level", box.Level.String(), "means", strings.Join(means, ", "), "gaps", strings.Join(gaps, "; "))
	switch {
	case box.Level < s.require:
		logger.Warn("no program will be run, since sandbox.require is "+s.require.String(), "level", box.Level.String(), "hint", box.Hint)
	case box.Level < sandbox.LevelFull:
		logger.Warn("programs are confined less than they could be", "level", box.Level.String(), "hint", box.Hint)
	}
}

// warm compiles the first tools that it finds. This compiles the schema of tool files,
// which happens once and takes longer than the rest of the first answer.
func warm(ctx context.Context, lib *packs.Library, files *toolfiles.Files) {
	for _, p := range lib.Catalog(ctx).Attached() {
		// Documents that may declare tools need none of the schemas.
		if len(p.ToolFiles) > 0 && files.HasTools(p) {
			return
		}
	}
}

// Ready says in a word why the server cannot do its work now: "log" or "store" if
// nothing can be recorded, "packs" if there is none; empty if it can.
func (s *Service) Ready(ctx context.Context) string {
	if err := s.log.Ready(ctx); err != nil {
		s.logger.Warn("the server is not ready: nothing can be recorded", "err", err)
		if errors.Is(err, store.ErrAway) {
			return "store"
		}
		return "log"
	}
	if len(s.Library.Catalog(ctx).All()) == 0 {
		return "packs"
	}
	return ""
}

// Close closes the service, and writes the last line of the log.
func (s *Service) Close() error {
	var err error
	if s.desk != nil {
		err = s.desk.close()
	}
	return errors.Join(err, s.closeGate(audit.Entry{Event: audit.EventServerStop}))
}

// closeGate closes what openGate opened, even if that failed halfway, and writes the
// last entries of the log.
func (s *Service) closeGate(last ...audit.Entry) (err error) {
	if s.runner != nil {
		s.runner.Close()
		s.containers.close()
	}
	if s.runs != nil {
		s.runs.Close() // it writes to the log
	}
	if s.Gate != nil {
		s.Gate.Close()
	}
	if s.log != nil {
		for _, e := range last {
			err = errors.Join(err, s.log.Append(e))
		}
		err = errors.Join(err, s.log.Close())
	}
	if s.shared != nil {
		s.shared.Close()
	}
	s.telemetry.Close() // last, since it waits for others
	return err
}

// people returns how many people the server may ask.
func people(cfg *config.Config, who []httpd.Credential) int {
	if cfg.HTTP.Addr == "" {
		return 1 // the user of the client
	}
	if cfg.HTTP.OIDC.Issuer != "" {
		return len(who) + cfg.HTTP.OIDC.People
	}
	return len(who)
}

func TokensOf(who []httpd.Credential) []string {
	all := make([]string, len(who))
	for i, c := range who {
		all[i] = c.Token
	}
	return all
}

// Connect returns both ends of a connection to the server: what it writes, and what
// it reads. ended closes the connection and waits for the server's end of it.
func (s *Service) Connect(ctx context.Context) (in io.Reader, out io.WriteCloser, ended func() error) {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := wire.ServeStdio(ctx, s.Server, toServer, fromServer)
		served <- errors.Join(err, fromServer.Close())
	}()
	return toClient, fromClient, func() error {
		return errors.Join(fromClient.Close(), <-served) // the end of its input ends the server
	}
}
