// Package get has the commands that add packs from elsewhere and keep them as their
// lock file says (search, add, apply, remove, outdated, diff, update, sync and
// verify), and those that offer a person's own packs to others (publish and index).
//
// It does not fetch or check anything itself: internal/sources does. This package
// shows a person what would change, and asks.
package get

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/get/signing"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/store"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// Exit statuses of these commands, in addition to 0, 1, 2 for misuse and [cli.StatusRefused].
const (
	statusDiffers = 2 // another version exists, or something differs from the lock file
	statusPartly  = 3 // some of it failed
)

// An app is one run of the program; its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the commands.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{
		a.addCommand(), a.removeCommand(), a.outdatedCommand(), a.diffCommand(), a.updateCommand(), a.syncCommand(), a.verifyCommand(),
		a.searchCommand(), a.applyCommand(), a.publishCommand(), a.indexCommand(),
	}
}

// settings are the flags that several commands share.
type settings struct {
	scope string // "user" or "project"
	yes   bool
	json  bool
}

func (a *app) flags(cmd *cobra.Command, s *settings, asks bool) {
	f := cmd.Flags()
	f.StringVar(&s.scope, "scope", "user", "user, for your own packs, or project, for those in its .packs and packs.lock.json")
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"user", "project"}, cobra.ShellCompDirectiveNoFileComp))
	a.ConfigFlag(cmd)
	if asks {
		f.BoolVarP(&s.yes, "yes", "y", false, "do what is shown without asking")
	}
}

// A place is one store, opened for a command.
type place struct {
	*store.Store
	cfg *config.Config
	web *web.Access
	l   *lock.Lock

	signatures signing.Verifier
}

func (a *app) place(ctx context.Context, s settings) (*place, error) {
	cfg, _, err := a.Load()
	if err != nil {
		return nil, err
	}
	p := &place{Store: cli.UserStore(cfg), cfg: cfg, web: a.web(cfg), signatures: signing.Verifier{Authorities: cfg.Sources.Sigstore}}
	switch s.scope {
	case "user":
	case "project":
		dir := cli.Project(cfg)
		if dir == "" {
			return nil, cli.WithHint(errors.New("there is no project here"), "run the command in the project's folder, which is the root of a git repository or named in the configuration")
		}
		p.Store = cli.ProjectStore(dir)
	default:
		return nil, &cli.UsageError{Err: fmt.Errorf("--scope is %q", s.scope), Hint: "it must be user or project"}
	}
	_ = temp.Sweep("") // of killed processes; what cannot be removed now is tried again next time
	if err := p.Recover(ctx); err != nil {
		return nil, err
	}
	p.l, err = p.Read()
	return p, err
}

// web returns which servers may be asked, and with which credentials.
func (a *app) web(cfg *config.Config) *web.Access {
	rules, _ := url.Parse(cfg.Sources.Rulebooks) // the configuration was checked
	return &web.Access{Private: cfg.Sources.Private, UserAgent: "packs-mcp/" + a.Version, Home: cfg.Paths.Home, Rulebooks: cfg.Sources.Rulebooks, Logins: a.logins(cfg), Credentials: func(host string) (string, string) {
		if key := cli.Getenv(a.Environ, "STAKPAK_API_KEY"); key != "" && rules != nil && host == rules.Hostname() {
			return "", key
		}
		switch host {
		case "github.com", "api.github.com":
			if token := cli.Getenv(a.Environ, "GITHUB_TOKEN"); token != "" {
				return "x-access-token", token
			}
		case "gitlab.com":
			if token := cli.Getenv(a.Environ, "GITLAB_TOKEN"); token != "" {
				return "oauth2", token
			}
		}
		return "", ""
	}}
}

// logins reads the credentials for registries that Podman and Docker keep.
func (a *app) logins(cfg *config.Config) func() (*web.Logins, error) {
	return func() (*web.Logins, error) {
		var files []string
		add := func(dir string, name ...string) {
			if filepath.IsAbs(dir) {
				files = append(files, filepath.Join(append([]string{dir}, name...)...))
			}
		}
		home := cfg.Paths.Home
		add(cli.Getenv(a.Environ, "REGISTRY_AUTH_FILE"))
		add(cli.Getenv(a.Environ, "XDG_RUNTIME_DIR"), "containers", "auth.json")
		add(cmp.Or(cli.Getenv(a.Environ, "XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "containers", "auth.json")
		add(cmp.Or(cli.Getenv(a.Environ, "DOCKER_CONFIG"), filepath.Join(home, ".docker")), "config.json")
		return web.ReadLogins(files...)
	}
}

// completeIDs offers the packs of the lock file to the shell.
func (a *app) completeIDs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	scope, _ := cmd.Flags().GetString("scope")
	p, err := a.place(cmd.Context(), settings{scope: scope})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for id := range p.l.Packs {
		ids = append(ids, id)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// offer returns the names of packs that can be chosen, for the shell.
func offer(found []sources.Pack, given []string) []string {
	var names []string
	for _, p := range found {
		if p.Valid && !slices.Contains(given, p.Name) {
			names = append(names, p.Name+"\t"+cli.OneLine(p.Description, 60))
		}
	}
	return names
}

// open opens the source of an entry, in its current or its recorded version.
func (p *place) open(ctx context.Context, text string) (sources.Snapshot, address.Reference, error) {
	r, err := address.Parse(text)
	if err != nil {
		return nil, r, err
	}
	if (r.Kind == address.Folder || r.Kind == address.Archive) && !filepath.IsAbs(r.At) {
		r.At = filepath.Join(filepath.Dir(p.LockFile), filepath.FromSlash(r.At))
	}
	snap, err := openSource(ctx, p.web, r)
	return snap, r, err
}
