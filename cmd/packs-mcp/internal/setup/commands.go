// Package setup has the command that adds packs-mcp to the settings of MCP clients,
// shows what it would change, and undoes its changes.
//
// It changes only the files that package clients names. It does not install clients,
// and uses nothing in their settings except the entry that it writes.
package setup

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
)

// An app is one run of the program; its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the command setup.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{a.setupCommand()}
}

// defaultName is the server's name in clients.
const defaultName = "packs"

// settings are the flags of setup.
type settings struct {
	scope, preset, name     string
	yes, dryRun, undo, json bool
	allow, replace          bool
}

func (a *app) setupCommand() *cobra.Command {
	var s settings
	ids := func() (all []string) {
		for _, c := range clients.All() {
			all = append(all, c.ID)
		}
		return all
	}
	cmd := &cobra.Command{
		Use:   "setup [CLIENT...]",
		Short: "Connect MCP clients to packs-mcp",
		Long: `Connect MCP clients to packs-mcp: find them, show what would change in their settings, ask,
write it, and start the server once as the client would. Without a CLIENT it does so for all that
are found here. What was there before is kept, and --undo brings it back.

The clients: ` + strings.Join(ids(), ", ") + `.
For the last two, and wherever a file cannot be changed safely, the entry to paste is printed.`,
		Example: `  packs-mcp setup                                   # all clients found here
  packs-mcp setup claude-code --packs ~/packs       # one client, and a folder of packs
  packs-mcp setup --dry-run                         # only show what would change
  packs-mcp setup codex --preset balanced --yes     # ask less often; write without asking
  packs-mcp setup --undo                            # take it all back`,
		Args: func(_ *cobra.Command, args []string) error {
			for _, id := range args {
				if _, ok := clients.ByID(id); !ok {
					hint := "the clients: " + strings.Join(ids(), ", ")
					if found := near.Names(id, ids(), 3); len(found) > 0 {
						hint = "did you mean " + strings.Join(found, " or ") + "?"
					}
					return &cli.UsageError{Err: fmt.Errorf("there is no client %q", id), Hint: hint}
				}
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ids(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.setup(cmd.Context(), args, s) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&a.Flags.Packs, "packs", nil, "a `DIR` that holds packs, for the entry (repeatable)")
	f.StringVar(&s.scope, "scope", "user", "whose settings: user, or project for the project's folder")
	f.StringVar(&s.preset, "preset", "", "how often the server asks: every-call, balanced or first-run (default: as configured)")
	f.StringVar(&s.name, "name", defaultName, "the server's `NAME` in the client")
	f.BoolVar(&s.allow, "allow", false, "let Claude Code call the tools of every server of this NAME without asking itself")
	f.BoolVar(&s.replace, "replace", false, "overwrite an entry of this NAME, whatever it starts")
	f.BoolVarP(&s.yes, "yes", "y", false, "write without asking; does not imply --allow")
	f.BoolVar(&s.dryRun, "dry-run", false, "show what would change, and change nothing")
	f.BoolVar(&s.undo, "undo", false, "bring back what was there before")
	cli.JSONFlag[connected](a.Env, cmd, &s.json)
	a.ConfigFlag(cmd)
	f.StringVar(&a.Flags.Project, "project", "", "the project `DIR` for --scope project (default: the git root of the working folder)")
	_ = cmd.MarkFlagDirname("packs")
	_ = cmd.MarkFlagDirname("project")
	for flag, values := range map[string][]string{"scope": {"user", "project"}, "preset": presets()} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

func presets() []string { return []string{"every-call", "balanced", "first-run"} }

// check returns an error for flags that do not go together.
func (s *settings) check() error {
	misuse := func(format string, args ...any) error {
		return &cli.UsageError{Err: fmt.Errorf(format, args...), Hint: "see: packs-mcp setup --help"}
	}
	switch {
	case s.scope != "user" && s.scope != "project":
		return misuse("--scope is user or project, not %q", s.scope)
	case s.preset != "" && !slices.Contains(presets(), s.preset):
		return misuse("--preset is every-call, balanced or first-run, not %q", s.preset)
	case !isName(s.name):
		return misuse("--name is at most 32 letters, digits, - and _, not %q", s.name)
	case s.undo && (s.json || s.dryRun):
		return &cli.UsageError{Err: errors.New("--undo does not go with --json or --dry-run"), Hint: "packs-mcp setup --undo takes back only what setup wrote, and names each file"}
	case s.json && !s.yes && !s.dryRun:
		return misuse("--json asks nothing: add --yes or --dry-run")
	}
	return nil
}

// isName reports whether clients accept a server's name. It becomes part of the names
// of tools, which have at most 64 characters.
func isName(s string) bool {
	const longest = 32
	return s != "" && len(s) <= longest && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	})
}

// place returns this machine and user.
func (a *app) place(cfg *config.Config) *clients.Place {
	project := cfg.Project
	if project == "" {
		project = cli.ProjectHere(cfg)
	}
	return &clients.Place{GOOS: runtime.GOOS, Environ: a.Environ, Home: cfg.Paths.Home, Project: project}
}

// server returns how clients will start this program.
func (a *app) server(cfg *config.Config, place *clients.Place, s settings) (clients.Server, error) {
	exe, err := ownPath(cli.Getenv(a.Environ, "PATH"), place)
	if err != nil {
		return clients.Server{}, err
	}
	entry := clients.Server{Command: exe, Args: []string{"serve"}}
	for _, dir := range a.Flags.Packs {
		full, err := filepath.Abs(dir)
		if err != nil {
			return clients.Server{}, err
		}
		if info, err := os.Stat(full); err != nil || !info.IsDir() {
			return clients.Server{}, cli.WithHint(fmt.Errorf("there is no folder %q", full), "name a folder that holds packs, or make it first")
		}
		entry.Args = append(entry.Args, "--packs", full)
	}
	if len(a.Flags.Packs) == 0 && !hasPacks(cfg) {
		entry.Args = append(entry.Args, "--bundled")
	}
	if s.preset != "" {
		entry.Args = append(entry.Args, "--policy", s.preset)
	}
	return entry, nil
}

// hasPacks reports whether a server has packs without a folder in its arguments.
// Otherwise it serves the examples, so that there is something to see.
func hasPacks(cfg *config.Config) bool {
	if len(cfg.Packs) > 0 || len(cfg.Compat) > 0 {
		return true
	}
	own, err := os.ReadDir(cfg.Paths.Packs)
	return err == nil && len(own) > 0
}

// ownPath returns the path that will still be this program's after an update: its
// place on PATH, if that leads here. A link in the project does not count, since it
// may lead to another program later.
func ownPath(path string, place *clients.Place) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	real, err := filepath.EvalSymlinks(exe)
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	if strings.Contains(filepath.ToSlash(real), "/go-build") {
		return "", cli.WithHint(errors.New("this program is a temporary build of the go command, which removes it"), "build it first: make build; then run: bin/packs-mcp setup")
	}
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, filepath.Base(exe))
		if to, err := filepath.EvalSymlinks(candidate); err == nil && filepath.IsAbs(candidate) && to == real && !inProject(place, candidate) {
			return candidate, nil
		}
	}
	return exe, nil
}

// asRoot reports whether the files would belong to root, and not to the person at the
// keyboard.
func asRoot(environ []string) bool {
	u, err := user.Current()
	return err == nil && u.Uid == "0" && cli.Getenv(environ, "SUDO_USER") != ""
}
