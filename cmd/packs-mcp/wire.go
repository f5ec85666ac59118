package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/copies"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/server"
	"github.com/packs-mcp/packs-mcp/internal/telemetry"
)

// load reads the configuration and makes the logger.
func (a *app) load() (*config.Config, *slog.Logger, error) {
	over := map[string]string{}
	set := func(key, value string) {
		if value != "" {
			over[key] = value
		}
	}
	set("project", a.flags.project)
	set("http.addr", a.flags.http)
	set("http.public_url", a.flags.publicURL)
	set("log.level", a.flags.logLevel)
	set("log.format", a.flags.logFormat)
	cfg, err := config.Load(config.Options{
		File: a.flags.config, FileRequired: a.flags.config != "", Environ: a.environ, Flags: over, Packs: a.flags.packs,
	})
	if err != nil {
		return nil, nil, err
	}
	logger := a.logger(cfg.Log)
	for _, w := range cfg.Warnings {
		logger.Warn(w)
	}
	return cfg, logger, nil
}

// project returns the project folder: the configured one, or the git root of
// the working folder, or none. A home folder that is in git, as some people's
// settings are, is no project by itself: tools would find everybody's keys. Nor
// is the folder in which a server of several people happens to be started: each
// one's tools would change the files of the others.
func project(cfg *config.Config) string {
	if cfg.Project != "" || severalPeople(cfg) {
		return cfg.Project
	}
	return projectHere(cfg)
}

// severalPeople reports whether what is served has tokens for more than one.
func severalPeople(cfg *config.Config) bool {
	who, _ := credentials(cfg)
	return cfg.HTTP.Addr != "" && len(who) > 1
}

// projectHere is the git root of the working folder; empty: there is none.
func projectHere(cfg *config.Config) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		parent := filepath.Dir(dir)
		if parent == dir || dir == cfg.Paths.Home {
			return ""
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		dir = parent
	}
}

// packsFolder is the folder whose own packs are found: the project, or, where there is
// none, the nearest folder from the working folder up that has a folder of packs in
// it. That makes it no project: no tool gets at it.
func (a *app) packsFolder(cfg *config.Config) string {
	if dir := project(cfg); dir != "" || severalPeople(cfg) {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		parent := filepath.Dir(dir)
		if parent == dir || dir == cfg.Paths.Home {
			return ""
		}
		for _, root := range a.ownRoots(cfg.Compat, dir) {
			if info, err := os.Stat(root.Dir); err == nil && info.IsDir() {
				return dir
			}
		}
		dir = parent
	}
}

// ownRoots are the folders of packs that a project has, those of other programs
// included.
func (a *app) ownRoots(compat []string, project string) []packs.Root {
	own := []packs.Root{{
		Dir: filepath.Join(project, ".packs"), Source: "project", Trust: packs.TrustUntrusted, Inside: project, Optional: true,
	}}
	for _, r := range a.compatRoots(compat, project) {
		if r.Inside != "" {
			own = append(own, r)
		}
	}
	return own
}

// roots are the folders that hold packs, in order of priority: those that were
// named, the project's own, the user's own, and those of other programs that
// the configuration lists.
func (a *app) roots(cfg *config.Config, project string) []packs.Root {
	var all []packs.Root
	for _, r := range cfg.Packs {
		root := packs.Root{
			Dir: r.Path, Source: "config", Trust: packs.TrustUser, Named: true,
			AttachAll: r.Attach.All, Attach: r.Attach.IDs, Entry: r.Entry, Docs: r.Docs,
		}
		if r.Trust == config.TrustUntrusted {
			root.Trust = packs.TrustUntrusted
		}
		if r.Source == config.FromFlag {
			root.Source = "flag"
		}
		all = append(all, root)
	}
	// These are looked at without being named, so that nobody misses them.
	if project != "" {
		all = append(all, a.ownRoots(nil, project)...)
	}
	all = append(all, packs.Root{Dir: cfg.Paths.Packs, Source: "user", Trust: packs.TrustUser, Optional: true})
	return append(all, a.compatRoots(cfg.Compat, project)...)
}

// compatRoots are the folders of other programs, found and not attached. Those
// of a project come with it, so nobody vouches for them.
func (a *app) compatRoots(names []string, project string) []packs.Root {
	var all []packs.Root
	for _, f := range config.CompatFolders(names, a.environ, runtime.GOOS, project) {
		root := packs.Root{Dir: f.Path, Source: f.Name, Trust: packs.TrustUser, Tools: f.Tools, Optional: true}
		if f.Project {
			root.Trust, root.Inside = packs.TrustUntrusted, project
		}
		all = append(all, root)
	}
	return all
}

// store is where attached packs are remembered.
func store(cfg *config.Config) *attach.Store {
	return attach.Open(filepath.Join(cfg.Paths.State, "attached.json"))
}

// library finds the packs. extra roots come first.
func (a *app) library(ctx context.Context, cfg *config.Config, logger *slog.Logger, extra ...packs.Root) (*packs.Library, error) {
	return packs.NewLibrary(ctx, packs.Options{
		Roots:  append(extra, a.roots(cfg, a.packsFolder(cfg))...),
		Mode:   cfg.Mode,
		Attach: a.flags.attach,
		Limits: packs.Limits{
			EntryDoc: cfg.Limits.EntryDoc, Frontmatter: int(cfg.Limits.Frontmatter), Description: cfg.Limits.Description,
			ToolsFile: cfg.Limits.ToolsFile, PackSize: cfg.Limits.PackSize,
		},
		Logger: logger,
		Index:  index(cfg),
	}, store(cfg))
}

// index is where this very program keeps what it read of packs; nowhere when it
// cannot tell itself from another.
func index(cfg *config.Config) packs.Index {
	build := buildName()
	if build == "" {
		return packs.Index{}
	}
	return packs.Index{Dir: cfg.Paths.Index, Version: build}
}

// toolFiles compiles tools under the configured limits.
func toolFiles(cfg *config.Config) *packs.ToolFiles {
	return packs.NewToolFiles(tools.Limits{
		Size: int(cfg.Limits.ToolsFile), Count: cfg.Limits.ToolsPerPack, Description: cfg.Limits.Description,
	}, cfg.Mode)
}

// A service is a server with everything it needs, ready to serve.
type service struct {
	server   *server.Server
	gate     *gate.Gate
	library  *packs.Library
	reporter *reporter // of what is wrong with the packs
	log      *audit.Log
	name     string // of this process, in the audit log
	require  sandbox.Level
	runner   *sandbox.Runner // the gate's; nil until it is there
	copies   *copies.Store   // the gate's
	changes  *changes.Store  // the runner's
	traces   *telemetry.Traces
	counter  *counter // nil when the person is asked here and nowhere else
	keeper   *keeper  // of the folders of packs; nil until it watches them
}

// start wires a service together. Whoever calls it closes it. With here, the
// person who is asked sits in front of this program: there is no other channel,
// and no answer is kept for later.
func (a *app) start(ctx context.Context, cfg *config.Config, logger *slog.Logger, who []server.Credential, here bool, extra ...packs.Root) (_ *service, err error) {
	s := &service{name: fmt.Sprintf("pid-%d-%d", os.Getpid(), time.Now().UnixMilli())}
	// A client waits for its first answer: what takes longest goes side by side.
	files := toolFiles(cfg)
	found := make(chan error, 1)
	go func() {
		var err error
		s.library, err = a.library(ctx, cfg, logger, extra...)
		giveBackMuch()
		found <- err
		if err == nil {
			warm(ctx, s.library, files)
		}
	}()
	s.log, err = audit.Open(cfg.Audit.Path, audit.Options{MaxSize: cfg.Audit.MaxSize, Server: s.name, Logger: logger})
	if err := <-found; err != nil {
		return nil, errors.Join(err, closeLog(s.log))
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.log.Close())
		}
	}()
	s.reporter = &reporter{logger: logger, attach: a.flags.attach}
	s.reporter.report(s.library.Catalog(ctx))
	s.require, err = sandbox.ParseLevel(cfg.Sandbox.Require)
	if err != nil {
		return nil, err
	}
	if !here {
		s.traces = telemetry.Start(a.environ, versionName(), logger)
	}
	s.copies = copies.Open(cfg.Paths.Copies, copies.Options{Pack: cfg.Limits.PackSize})
	programs := new(sandbox.Lookuper)
	s.changes = a.keepChanges(ctx, cfg, logger)
	s.runner = sandbox.New(sandbox.Options{
		Lookuper: programs, Logger: logger, Changes: s.changes, CopyDir: copyDir(cfg),
		ReserveDir: filepath.Dir(cfg.Audit.Path), Reserve: logReserve,
	})
	asking := gate.Options{
		Runner: s.runner, Log: s.traces.Tracer().Recorder(s.log), Logger: logger, Server: s.name, Require: s.require,
		Policy: cfg.Approval.Policy, Prompts: cfg.Approval.Prompts, People: people(cfg, who), Rules: cfg.Rules, Channels: cfg.Approval.Channels,
		Copies: s.copies, Grants: grantStore(cfg).Among(people(cfg, who)),
		Wait: cfg.Approval.Wait, Pending: cfg.Approval.Pending, FullArguments: cfg.Audit.FullArguments,
	}
	if here {
		asking.Channels, asking.Grants = []string{gate.ChannelElicitation}, nil
	}
	s.gate, err = gate.New(asking)
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("looking for the working folder: %w", err)
	}
	var unseen func()
	if !here {
		s.counter = a.counter(s, cfg, logger)
		unseen = s.counter.unseen
	}
	l := cfg.Limits
	s.server, err = server.New(server.Options{
		Version: versionName(), Library: s.library, Gate: s.gate, Logger: logger, Tools: files, Programs: programs,
		Workspaces: cfg.Paths.Workspaces, Workspace: a.flags.workspace, Project: project(cfg),
		Dir: dir, Environ: a.environ, Grants: grants(cfg), Own: own(cfg), Private: secretFiles(cfg), Tokens: tokensOf(who), AuditLog: cfg.Audit.Path, Mode: cfg.Mode, Context: cfg.Context, Dotted: cfg.ToolNames == config.Dotted, Skills: cfg.Expose == config.ExposeSkills, Wait: cfg.Approval.Wait, Unseen: unseen, Spans: s.traces.Tracer(),
		Limits: server.Limits{
			Request: int(l.Request), ReadPage: l.ReadPage, ReadPageMax: l.ReadPageMax, ReadFile: l.ReadFile,
			Frontmatter: int(l.Frontmatter), Description: l.Description, EnabledTools: l.EnabledTools, Runs: l.Runs, TimeoutMax: cfg.Sandbox.TimeoutMax,
			Run: sandbox.Limits{
				Timeout: l.Timeout, CPU: l.CPU, Memory: l.Memory, Processes: l.Processes, OpenFiles: l.OpenFiles,
				FileSize: l.FileSize, Workspace: l.Workspace, Layer: l.Layer, LayerNames: l.LayerNames,
				Output: int(l.Output), OutputMerged: 2 * int(l.OutputMarkdown), OutputTotal: l.OutputTotal,
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return s, s.log.AppendLazy(audit.Entry{
		Event: audit.EventServerStart, Reason: "packs-mcp " + versionName() + " on " + runtime.GOOS,
	})
}

// keepChanges opens the store of changes for a server. It returns nil if the store
// cannot be opened: then runs can only read the user's folders.
func (a *app) keepChanges(ctx context.Context, cfg *config.Config, logger *slog.Logger) *changes.Store {
	kept, err := a.changeStore(ctx, cfg, logger)
	if err != nil {
		logger.Warn("runs cannot change your folders", "err", err, "hint", "mend the folder of the state, and start the server again")
		return nil
	}
	return kept
}

// changeStore opens the store of what runs changed in the user's folders, which all
// servers share. What would change the questions that are asked stays as it is,
// whatever its name.
func (a *app) changeStore(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*changes.Store, error) {
	protected := append(slices.Concat(own(cfg), secretFiles(cfg)), cfg.Audit.Path)
	for _, root := range a.roots(cfg, project(cfg)) {
		protected = append(protected, root.Dir)
	}
	return changes.Open(ctx, changes.Options{
		Dir: filepath.Join(cfg.Paths.State, "changes"), MaxBytes: cfg.Limits.Held, MaxAge: cfg.Limits.HeldAge,
		Protect: cfg.Sandbox.Protect, Unprotect: cfg.Sandbox.Unprotect, Own: protected, Logger: logger,
		GitConfig: gitConfig(a.environ),
	})
}

// gitConfig are the files of git's settings outside of repositories.
func gitConfig(environ []string) []string {
	if file := env(environ, "GIT_CONFIG_GLOBAL"); file != "" {
		return []string{file, "/etc/gitconfig"}
	}
	files := []string{"/etc/gitconfig"}
	home := homeOf(environ)
	if home != "" {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	if xdg := env(environ, "XDG_CONFIG_HOME"); xdg != "" {
		files = append(files, filepath.Join(xdg, "git", "config"))
	} else if home != "" {
		files = append(files, filepath.Join(home, ".config", "git", "config"))
	}
	return files
}

// copyDir is where runs find copies of folders that can have no other layer: in
// the user's cache, since files clone only within one file system. Empty when it
// cannot be made: the system's temporary folder is good enough.
func copyDir(cfg *config.Config) string {
	dir := filepath.Join(filepath.Dir(cfg.Paths.Copies), "layers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	return dir
}

// logReserve is how much of the audit log's disk runs leave free.
const logReserve = 64 << 20

// people is how many persons the server asks.
func people(cfg *config.Config, who []server.Credential) int {
	if cfg.HTTP.Addr == "" {
		return 1 // whoever started the client
	}
	return len(who)
}

// grants are the user's, as the server takes them.
func grants(cfg *config.Config) []server.Grant {
	all := make([]server.Grant, len(cfg.Sandbox.Grants))
	for i, g := range cfg.Sandbox.Grants {
		all[i] = server.Grant(g)
	}
	return all
}

// own are the files and folders that this program goes by.
func own(cfg *config.Config) []string {
	all := []string{cfg.Paths.Config, cfg.Paths.State, cfg.Paths.Packs, cfg.Paths.Run, cfg.Paths.Copies, cfg.Paths.Index}
	if cfg.File != "" {
		all = append(all, cfg.File)
	}
	return all
}

// secretFiles are the files and folders that no program of a pack may read: who has
// read them can answer in a person's place, or be another one.
func secretFiles(cfg *config.Config) []string {
	all := []string{cfg.Paths.State, cfg.Paths.Run}
	if cfg.HTTP.InFile {
		all = append(all, cfg.File)
	}
	if cfg.HTTP.TLSKey != "" {
		all = append(all, cfg.HTTP.TLSKey)
	}
	return all
}

// reportSandbox finds out how programs are confined here, and logs it. What
// killed servers have left of their runs is removed on the way.
func (s *service) reportSandbox(ctx context.Context, logger *slog.Logger) {
	box := s.gate.Sandbox(ctx)
	if err := s.copies.Sweep(ctx); err != nil {
		logger.Warn("what is left of private copies is not all removed", "err", err)
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

// warm compiles the first tools there are: the schema behind them is compiled
// once, and takes longer than all the rest of the first answer.
func warm(ctx context.Context, lib *packs.Library, files *packs.ToolFiles) {
	for _, p := range lib.Catalog(ctx).Attached() {
		// Documents that may declare tools need none of the schemas.
		if len(p.ToolFiles) > 0 && files.HasTools(p) {
			return
		}
	}
}

// closeLog closes a log that may not have been opened.
func closeLog(l *audit.Log) error {
	if l == nil {
		return nil
	}
	return l.Close()
}

// close writes the last line of the log.
func (s *service) close() error {
	var err error
	if s.counter != nil {
		err = s.counter.close()
	}
	if s.runner != nil {
		s.runner.Close()
	}
	if s.gate != nil {
		s.gate.Close()
	}
	err = errors.Join(err, s.log.Append(audit.Entry{Event: audit.EventServerStop}), s.log.Close())
	s.traces.Close() // last: it waits for others
	return err
}
