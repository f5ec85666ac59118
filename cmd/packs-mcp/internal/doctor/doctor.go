package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/container"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// A checkup is what doctor finds, as doctor --json prints it. Sections that
// need a configuration are left out when it does not load.
type checkup struct {
	OK       bool             `json:"ok"`    // an approved call could run here
	Stops    []finding        `json:"stops"` // what keeps calls from running
	Warnings []finding        `json:"warnings"`
	Version  string           `json:"version"`
	System   string           `json:"system"`  // "linux/amd64"
	AsRoot   bool             `json:"as_root"` // this program runs as root, and so would programs of packs
	Sandbox  checkedSandbox   `json:"sandbox"`
	Approval *checkedApproval `json:"approval,omitempty"`
	Config   checkedConfig    `json:"config"`
	Packs    *checkedPacks    `json:"packs,omitempty"`
	Caches   *checkedCaches   `json:"caches,omitempty"` // absent if no tool has a cache
	Audit    *checkedAudit    `json:"audit,omitempty"`
	Clients  []foundClient    `json:"clients"`
}

// A finding is one problem, and what to do about it.
type finding struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

type checkedSandbox struct {
	Level           sandbox.Level `json:"level"`
	Required        string        `json:"required,omitempty"`
	Met             bool          `json:"met"`
	NetworkEnforced bool          `json:"network_enforced"` // runs can only use the network that was approved
	Trials          []trial       `json:"trials"`
	Layers          string        `json:"layers"` // how runs change a project: "overlay", or why only by copies
	Hint            string        `json:"hint,omitempty"`

	Containers []checkedContainer `json:"containers,omitempty"` // absent if none are configured
}

// A checkedContainer is one image in which programs are to run.
type checkedContainer struct {
	Socket  string `json:"socket"`
	Image   string `json:"image"`
	Runtime string `json:"runtime,omitempty"`
	Engine  string `json:"engine,omitempty"` // its name and version
	ID      string `json:"id,omitempty"`     // of the image
	trial
}

// A trial is one level that was tested by running a program under it.
type trial struct {
	Level   sandbox.Level `json:"level"`
	Works   bool          `json:"works"`
	Means   []string      `json:"means,omitempty"`
	Gaps    []string      `json:"gaps,omitempty"`
	Problem string        `json:"problem,omitempty"`
	TookMS  float64       `json:"took_ms"`
}

type checkedApproval struct {
	Policy   string   `json:"policy"`
	Channels []string `json:"channels"`
	WaitMS   int64    `json:"wait_ms"` // 0: the client's own
	Rules    int      `json:"rules"`
}

type checkedConfig struct {
	File     string          `json:"file"` // the file that is read if it exists
	Exists   bool            `json:"exists"`
	OK       bool            `json:"ok"`
	Problems []configProblem `json:"problems"`
	Warnings []string        `json:"warnings,omitempty"`
}

type configProblem struct {
	Where   string `json:"where,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

type checkedPacks struct {
	Found    int               `json:"found"`
	Attached int               `json:"attached"`
	Roots    []checkedRoot     `json:"roots"`
	Problems []diag.Diagnostic `json:"problems"` // of the roots; list --all has those of packs
}

type checkedRoot struct {
	Path     string      `json:"path"`
	Source   string      `json:"source"`
	Trust    packs.Trust `json:"trust"`
	Exists   bool        `json:"exists"`
	Found    int         `json:"found"`
	Attached int         `json:"attached"`
	Invalid  int         `json:"invalid"`
	Shadowed int         `json:"shadowed"`
}

// checkedCaches describes what tools keep between their runs.
type checkedCaches struct {
	Path  string         `json:"path"`
	Tools []checkedCache `json:"tools"`
}

type checkedCache struct {
	Pack   string    `json:"pack"`
	Tool   string    `json:"tool"`
	Name   string    `json:"name"`
	Person string    `json:"person,omitempty"`
	Bytes  int64     `json:"bytes"` // after the last run that ended
	Used   time.Time `json:"used"`
}

type checkedAudit struct {
	Path     string `json:"path"`
	Exists   bool   `json:"exists"`
	Writable bool   `json:"writable"`
	Verified bool   `json:"verified"` // also true if there is no log yet
	Entries  int    `json:"entries"`
}

func (a *app) doctorCommand() *cobra.Command {
	var asJSON, attack bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what works here, and what keeps packs from running",
		Long: `Look at everything that a call needs: the sandbox, by running something under each level
until one works; who can be asked; the configuration; the folders of packs; the audit log;
and the clients that are set up on this machine. Nothing is changed. The exit status is 0
when an approved call could run here, and 1 when something stops it.

With --attack, test the sandbox instead: a program that is confined as a tool would be tries
what a hostile one would, at each level of this machine, and the outcome of each try is
printed. The tries act on nothing but a folder, sockets and a process made for them. The exit
status is 1 when something that must be refused was not.`,
		Example: `  packs-mcp doctor
  packs-mcp doctor --packs ~/packs
  packs-mcp doctor --attack
  packs-mcp doctor --json | jq .sandbox.level`,
		Args: cli.Misuse(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if attack {
				return a.attack(cmd.Context(), asJSON)
			}
			return a.doctor(cmd.Context(), runner.Options{}, asJSON)
		},
	}
	a.PackFlags(cmd)
	cli.JSONFlag[checkup](a.Env, cmd, &asJSON)
	cli.AlsoJSON[attacked](a.Env, cmd, "--attack")
	cmd.Flags().BoolVar(&attack, "attack", false, "try what a hostile program would, at each level, and print the outcomes")
	return cmd
}

func (a *app) doctor(ctx context.Context, o runner.Options, asJSON bool) error {
	c, err := a.examine(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		err = cli.PrintJSON(a.Stdout, c)
	} else {
		err = printCheckup(a.Screen(a.Stdout), c)
	}
	if err != nil {
		return err
	}
	if !c.OK {
		return cli.ErrSaid
	}
	return nil
}

// examine looks at everything.
func (a *app) examine(ctx context.Context, o runner.Options) (*checkup, error) {
	c := &checkup{
		Stops: []finding{}, Warnings: []finding{},
		Version: a.Version, System: runtime.GOOS + "/" + runtime.GOARCH, AsRoot: os.Geteuid() == 0,
	}
	cfg, logger, err := a.Load()
	if err != nil {
		if !c.brokenConfig(err) {
			return nil, err
		}
		c.Config.File = a.configFile()
	} else {
		c.Config = checkedConfig{
			File: cfg.File, Exists: cfg.File != "", OK: true, Problems: []configProblem{}, Warnings: cfg.Warnings,
		}
		if cfg.File == "" {
			c.Config.File = cfg.Paths.Config
		}
	}
	o.Logger = logger
	if err := c.examineSandbox(ctx, o, cfg); err != nil {
		return nil, err
	}
	home, dir := homeOf(a.Environ), ""
	if cfg != nil {
		c.Approval = &checkedApproval{Policy: cfg.Approval.Policy, Channels: cfg.Approval.Channels, WaitMS: cfg.Approval.Wait.Milliseconds(), Rules: len(cfg.Rules)}
		home, dir = cfg.Paths.Home, cli.Project(cfg)
		if err := c.examinePacks(ctx, a, cfg, logger); err != nil {
			return nil, err
		}
		c.examineCaches(cfg)
		if cfg.Store.URL == "" { // otherwise the log is in the store
			c.examineAudit(cfg.Audit.Path)
		}
	}
	c.Clients = findClients(&clients.Place{GOOS: runtime.GOOS, Environ: a.Environ, Home: home, Project: dir})
	for _, f := range c.Clients {
		if f.Problem != "" {
			c.warn(fmt.Sprintf("%s cannot read its settings in %s: %s", f.Client, quoted(f.File), safetext.Line(f.Problem)), "mend the file in an editor")
		}
		for _, s := range f.Servers {
			if s.Problem != "" {
				c.warn(fmt.Sprintf("%s cannot start %q as %s says: %s", f.Client, s.Name, quoted(f.File), safetext.Line(s.Problem)), s.Hint)
			}
		}
	}
	if c.AsRoot {
		c.warn("packs-mcp runs as root, and so would what packs run, as far as the sandbox lets it", "start it, or the client that starts it, as an ordinary user")
	}
	c.OK = len(c.Stops) == 0
	return c, nil
}

func (c *checkup) stop(message, hint string) { c.Stops = append(c.Stops, finding{message, hint}) }
func (c *checkup) warn(message, hint string) { c.Warnings = append(c.Warnings, finding{message, hint}) }

// brokenConfig notes what is wrong with the configuration, if err is about that.
func (c *checkup) brokenConfig(err error) bool {
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return false
	}
	c.Config.Exists = true
	for _, p := range e.Problems {
		c.Config.Problems = append(c.Config.Problems, configProblem{p.Where, p.Key, p.Message})
	}
	c.stop("the configuration does not load", "correct what is said about it above; until then the server does not start")
	return true
}

// configFile returns the path of the configuration that is read.
func (a *app) configFile() string {
	if a.Flags.Config != "" {
		return a.Flags.Config
	}
	if name := cli.Getenv(a.Environ, "PACKS_MCP_CONFIG"); name != "" {
		return name
	}
	paths, err := places.Resolve(a.Environ, runtime.GOOS)
	if err != nil {
		return ""
	}
	return paths.Config
}

// examineSandbox finds the level of this machine, and compares it with what cfg
// requires. cfg may be nil.
func (c *checkup) examineSandbox(ctx context.Context, o runner.Options, cfg *config.Config) error {
	if cfg != nil {
		o.Together = sandbox.Together{Memory: cfg.Limits.MemoryTogether, Processors: cfg.Limits.Processors}
	}
	runner := runner.New(o)
	defer runner.Close()
	report := runner.Probe(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	s := &c.Sandbox
	s.Level, s.NetworkEnforced, s.Hint = report.Level, report.NetworkEnforced, report.Hint
	s.Layers = cmp.Or(report.Overlay, sandbox.LayerOverlay.String())
	for _, t := range report.Trials {
		s.Trials = append(s.Trials, trial{
			Level: t.Level, Works: t.Problem == "", Means: t.Means, Gaps: t.Gaps, Problem: t.Problem,
			TookMS: float64(t.Took.Round(10*time.Microsecond)) / float64(time.Millisecond),
		})
	}
	if cfg == nil {
		return nil
	}
	for _, image := range cfg.Sandbox.Images() {
		c.examineContainers(ctx, o, &cfg.Sandbox.Container, image)
	}
	if report.Together != "" {
		c.warn("the limits memory_together and processors are not enforced here: "+report.Together, "runs go on with the limits of each process; every question says so")
	}
	required, err := sandbox.ParseLevel(cfg.Sandbox.Require)
	if err != nil {
		return err
	}
	s.Required, s.Met = required.String(), s.Level >= required
	if !s.Met {
		c.stop(fmt.Sprintf("runs are confined at level %s here, and the configuration requires %s", s.Level, required), s.Hint)
	}
	return nil
}

// examineContainers tests an image by running a container.
func (c *checkup) examineContainers(ctx context.Context, o runner.Options, to *config.Containers, image string) {
	system := container.New(container.Options{Socket: to.Socket, Image: image, Runtime: to.Runtime, Logger: o.Logger})
	o.System = system
	r := runner.New(o)
	defer r.Close()
	report := r.Probe(ctx)
	out := checkedContainer{Socket: to.Socket, Image: image, Runtime: to.Runtime}
	out.Engine, out.ID = system.About(ctx)
	for i, t := range report.Trials {
		if works := t.Problem == "" && t.Level > sandbox.LevelNone; i > 0 && !works {
			continue // the first says why there is none
		}
		out.trial = trial{
			Level: t.Level, Works: t.Problem == "", Means: t.Means, Gaps: t.Gaps, Problem: t.Problem,
			TookMS: float64(t.Took.Round(10*time.Microsecond)) / float64(time.Millisecond),
		}
	}
	if !out.Works {
		c.stop(fmt.Sprintf("no program can run in a container of the image %q: %s", image, out.Problem), report.Hint)
	}
	c.Sandbox.Containers = append(c.Sandbox.Containers, out)
}

// examinePacks counts the packs of each root.
func (c *checkup) examinePacks(ctx context.Context, a *app, cfg *config.Config, logger *slog.Logger) error {
	lib, err := a.Library(ctx, cfg, logger)
	if err != nil {
		return err
	}
	catalog := lib.Catalog(ctx)
	out := &checkedPacks{
		Found: len(catalog.All()), Attached: len(catalog.Attached()), Roots: []checkedRoot{},
		Problems: append([]diag.Diagnostic{}, catalog.Problems()...),
	}
	for _, r := range a.Roots(cfg, a.PacksFolder(cfg)) {
		_, err := os.Stat(r.Dir)
		if r.Optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		root := checkedRoot{Path: r.Dir, Source: r.Source, Trust: r.Trust, Exists: err == nil}
		for _, p := range catalog.All() {
			if p.Root != r.Dir || p.Source != r.Source {
				continue
			}
			root.Found++
			switch {
			case !p.Valid:
				root.Invalid++
			case p.ShadowedBy != "":
				root.Shadowed++
			case p.Attached:
				root.Attached++
			}
		}
		out.Roots = append(out.Roots, root)
	}
	c.Packs = out
	if message, hint := cli.SayWithoutTool(cfg, cli.WithoutTool(cfg, catalog)); message != "" {
		c.warn(message, hint)
	}
	return nil
}

// examineCaches lists what tools keep between their runs.
func (c *checkup) examineCaches(cfg *config.Config) {
	all, err := cli.CacheStore(cfg).List()
	if err != nil {
		c.warn(fmt.Sprintf("tools with a cache cannot run: %v", err), "")
		return
	}
	if len(all) == 0 {
		return
	}
	c.Caches = &checkedCaches{Path: cfg.Paths.Caches, Tools: []checkedCache{}}
	for _, e := range all {
		if e.About.Name == "" {
			continue // the next sweep removes it
		}
		c.Caches.Tools = append(c.Caches.Tools, checkedCache{
			Pack: e.About.Pack, Tool: e.About.Tool, Name: e.About.Name, Person: e.About.Person, Bytes: e.Bytes, Used: e.Used,
		})
	}
}

// examineAudit checks whether a line could be written to the log, and whether its
// lines are unchanged.
func (c *checkup) examineAudit(path string) {
	c.Audit = &checkedAudit{Path: path}
	notWritable := func(err error) {
		hint := "a call runs only when that is on record: give the folder to this user, or name another file with audit.path"
		if e, ok := errors.AsType[*audit.UnsafeError](err); ok {
			err, hint = fmt.Errorf("%q %s", e.Path, e.Reason), e.Hint
		}
		c.stop(fmt.Sprintf("the audit log cannot be written: %v", err), hint)
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		c.Audit.Verified = true
		if err := couldMake(path); err != nil {
			notWritable(err)
			return
		}
		c.Audit.Writable = true
		return
	}
	c.Audit.Exists = true
	log, err := audit.Open(path, audit.Options{})
	if err == nil {
		err = log.Close()
	}
	if err != nil {
		notWritable(err)
	} else {
		c.Audit.Writable = true
	}
	report, err := audit.Verify(path)
	switch {
	case err != nil:
		c.warn(fmt.Sprintf("the audit log cannot be read: %v", err), "")
	case !report.OK:
		c.warn("the audit log is not as it was written", "packs-mcp audit verify says where")
	}
	c.Audit.Verified, c.Audit.Entries = err == nil && report.OK, report.Entries
}

// couldMake returns why a file could not be created at path, without creating it; nil
// if it could.
func couldMake(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%q is not a folder", dir)
		}
		f, err := os.CreateTemp(dir, ".packs-mcp-doctor-*")
		if err != nil {
			return fmt.Errorf("in %q: %w", dir, errors.Unwrap(err))
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
}

func homeOf(environ []string) string {
	if runtime.GOOS == "windows" {
		return cli.Getenv(environ, "USERPROFILE")
	}
	return cli.Getenv(environ, "HOME")
}
