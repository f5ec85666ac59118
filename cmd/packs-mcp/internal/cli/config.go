package cli

import (
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/caches"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/grantfile"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// Load reads the configuration and makes the logger.
func (env *Env) Load() (*config.Config, *slog.Logger, error) {
	over := map[string]string{}
	set := func(key, value string) {
		if value != "" {
			over[key] = value
		}
	}
	set("project", env.Flags.Project)
	set("http.addr", env.Flags.HTTP)
	set("http.public_url", env.Flags.PublicURL)
	set("approval.policy", env.Flags.Policy)
	set("log.level", env.Flags.LogLevel)
	set("log.format", env.Flags.LogFormat)
	cfg, err := config.Load(config.Options{
		File: env.Flags.Config, FileRequired: env.Flags.Config != "", Environ: env.Environ, Flags: over, Packs: env.Flags.Packs,
	})
	if err != nil {
		return nil, nil, err
	}
	logger := env.Logger(cfg.Log)
	for _, w := range cfg.Warnings {
		logger.Warn(w)
	}
	return cfg, logger, nil
}

// Project returns the project folder: the configured one, or the git root of the
// working folder, or none. A home folder that is in git, as some people's settings
// are, is not a project: tools would find all the keys in it. Nor is the folder in
// which a server for several people was started: each person's tools would change the
// others' files.
func Project(cfg *config.Config) string {
	if cfg.Project != "" || SeveralPeople(cfg) {
		return cfg.Project
	}
	return ProjectHere(cfg)
}

// SeveralPeople reports whether more than one person may use the server.
func SeveralPeople(cfg *config.Config) bool {
	who, _ := Credentials(cfg)
	return cfg.HTTP.Addr != "" && (len(who) > 1 || cfg.HTTP.OIDC.Issuer != "")
}

// ProjectHere returns the git root of the working folder; empty if there is
// none.
func ProjectHere(cfg *config.Config) string {
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

// Credentials returns who may use the server over HTTP with a fixed token. If nobody
// could use it, it makes a token and returns it. Over standard input and output no
// token is needed.
func Credentials(cfg *config.Config) (who []httpd.Credential, made string) {
	if cfg.HTTP.Token != "" {
		who = append(who, httpd.Credential{Token: cfg.HTTP.Token})
	}
	for _, t := range cfg.HTTP.Tokens {
		who = append(who, httpd.Credential{Token: t.Token, Person: t.Name, Groups: t.Groups})
	}
	if len(who) == 0 && cfg.HTTP.OIDC.Issuer == "" && cfg.HTTP.Addr != "" {
		made = rand.Text()
		who = []httpd.Credential{{Token: made}}
	}
	return who, made
}

// OwnFiles returns the files and folders on which this program depends.
func OwnFiles(cfg *config.Config) []string {
	all := []string{cfg.Paths.Config, cfg.Paths.State, cfg.Paths.Packs, cfg.Paths.Sources, filepath.Join(filepath.Dir(cfg.Paths.Sources), lock.Name), cfg.Paths.Copies, cfg.Paths.Caches, cfg.Paths.Index}
	all = append(append(all, cfg.Paths.Runs...), cfg.Paths.Others...)
	if cfg.File != "" {
		all = append(all, cfg.File)
	}
	return all
}

// SecretFiles returns the files and folders that no program of a pack may read:
// anybody who has read them can answer in a person's place, or impersonate another
// person.
func SecretFiles(cfg *config.Config) []string {
	// The keys of the user's other servers are in the other folders. A server does
	// not start if its keys would be in a system folder, so these hold none.
	others := slices.DeleteFunc(slices.Clone(cfg.Paths.Others), func(dir string) bool { return paths.IsSystem(paths.WithoutLinks(dir)) })
	all := slices.Concat([]string{cfg.Paths.State}, cfg.Paths.Runs, others)
	if cfg.HTTP.InFile {
		all = append(all, cfg.File)
	}
	for _, path := range []string{cfg.Store.Credentials, cfg.Store.KeyFile} {
		if path != "" {
			all = append(all, path)
		}
	}
	if cfg.HTTP.TLSKey != "" {
		all = append(all, cfg.HTTP.TLSKey)
	}
	if cfg.Sandbox.Container.Socket != "" {
		all = append(all, cfg.Sandbox.Container.Socket) // a program could do anything with it
	}
	return all
}

// manyCaches is how many caches of the largest size fit into the store.
const manyCaches = 8

// CacheStore returns the store of tools' caches.
func CacheStore(cfg *config.Config) *caches.Store {
	return caches.Open(cfg.Paths.Caches, caches.Options{Bytes: manyCaches * cfg.Limits.Cache})
}

// GrantStore returns the store of "always" answers.
func GrantStore(cfg *config.Config) *grantfile.Store {
	return grantfile.Open(filepath.Join(cfg.Paths.State, "grants.json"))
}
