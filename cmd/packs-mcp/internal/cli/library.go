package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// PacksFolder returns the folder whose own packs are found: the project or, if there
// is none, the nearest folder, from the working folder upward, that contains a folder
// of packs. That folder does not become a project: tools get no access to it.
func (env *Env) PacksFolder(cfg *config.Config) string {
	if dir := Project(cfg); dir != "" || SeveralPeople(cfg) {
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
		for _, root := range env.ownRoots(cfg.Compat, dir) {
			if info, err := os.Stat(root.Dir); err == nil && info.IsDir() {
				return dir
			}
		}
		dir = parent
	}
}

// ownRoots returns the folders of packs in a project, including those of other
// programs.
func (env *Env) ownRoots(compat []string, project string) []packs.Root {
	own := []packs.Root{{
		Dir: filepath.Join(project, ".packs"), Source: "project", Trust: packs.TrustUntrusted, Inside: project, Optional: true,
	}}
	for _, r := range env.CompatRoots(compat, project) {
		if r.Inside != "" {
			own = append(own, r)
		}
	}
	return own
}

// Roots returns the folders that hold packs, in order of priority: those that were
// named, the project's own, the user's own, and those of other programs that the
// configuration lists.
func (env *Env) Roots(cfg *config.Config, project string) []packs.Root {
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
	// Nobody named these folders, so it is no problem if they do not exist.
	if project != "" {
		all = append(all, env.ownRoots(nil, project)...)
	}
	all = append(all, packs.Root{Dir: cfg.Paths.Packs, Source: "user", Trust: packs.TrustUser, Optional: true})
	// A person added these one by one, but nobody vouches for what they do.
	all = append(all, packs.Root{Dir: cfg.Paths.Sources, Source: "added", Trust: packs.TrustUntrusted, Optional: true})
	return append(all, env.CompatRoots(cfg.Compat, project)...)
}

// CompatRoots returns the folders of other programs. Their packs are found but not
// attached. Those in a project come with it, so nobody vouches for them.
func (env *Env) CompatRoots(names []string, project string) []packs.Root {
	var all []packs.Root
	for _, f := range places.CompatFolders(names, env.Environ, runtime.GOOS, project) {
		root := packs.Root{Dir: f.Path, Source: f.Name, Trust: packs.TrustUser, Tools: f.Tools, Optional: true}
		if f.Project {
			root.Trust, root.Inside = packs.TrustUntrusted, project
		}
		all = append(all, root)
	}
	return all
}

// AttachedStore returns the store of attached packs.
func AttachedStore(cfg *config.Config) *attach.Store {
	return attach.Open(filepath.Join(cfg.Paths.State, "attached.json"))
}

// Library finds the packs. extra roots come first.
func (env *Env) Library(ctx context.Context, cfg *config.Config, logger *slog.Logger, extra ...packs.Root) (*packs.Library, error) {
	return packs.NewLibrary(ctx, packs.Options{
		Roots:  append(extra, env.Roots(cfg, env.PacksFolder(cfg))...),
		Mode:   cfg.Mode,
		Attach: env.Flags.Attach,
		Limits: packs.Limits{
			EntryDoc: cfg.Limits.EntryDoc, Frontmatter: int(cfg.Limits.Frontmatter), Description: cfg.Limits.Description,
			ToolsFile: cfg.Limits.ToolsFile, PackSize: cfg.Limits.PackSize,
		},
		Logger: logger,
		Index:  env.index(cfg),
	}, AttachedStore(cfg))
}

// index returns where this build of the program keeps what it read of packs. It is
// the zero Index if the program cannot identify its own build.
func (env *Env) index(cfg *config.Config) memo.Index {
	build := buildName(env.Version)
	if build == "" {
		return memo.Index{}
	}
	return memo.Index{Dir: cfg.Paths.Index, Version: build}
}

// ToolFiles compiles tools under the configured limits.
func ToolFiles(cfg *config.Config) *toolfiles.Files {
	return toolfiles.New(tools.Limits{
		Size: int(cfg.Limits.ToolsFile), Count: cfg.Limits.ToolsPerPack, Description: cfg.Limits.Description,
	}, cfg.Mode)
}

// ChangeStore opens the store of what runs changed in the user's folders, which all
// servers share. Files that affect the questions to people are never changed,
// whatever their names.
func (env *Env) ChangeStore(ctx context.Context, cfg *config.Config, logger *slog.Logger, waiting func(changes.Holder)) (*changes.Store, error) {
	protected := append(slices.Concat(OwnFiles(cfg), SecretFiles(cfg)), cfg.Audit.Path)
	for _, root := range env.Roots(cfg, Project(cfg)) {
		protected = append(protected, root.Dir)
	}
	return changes.Open(ctx, changes.Options{
		Dir: filepath.Join(cfg.Paths.State, "changes"), MaxBytes: cfg.Limits.Held, MaxAge: cfg.Limits.HeldAge,
		Protect: cfg.Sandbox.Protect, Unprotect: cfg.Sandbox.Unprotect, Own: protected, Logger: logger, Waiting: waiting,
		GitConfig: env.gitConfig(cfg), Home: cfg.Paths.Home,
	})
}

// gitConfig returns git's configuration files outside of repositories.
func (env *Env) gitConfig(cfg *config.Config) []string {
	if file := Getenv(env.Environ, "GIT_CONFIG_GLOBAL"); file != "" {
		return []string{file, "/etc/gitconfig"}
	}
	files := []string{"/etc/gitconfig"}
	if cfg.Paths.Home != "" {
		files = append(files, filepath.Join(cfg.Paths.Home, ".gitconfig"))
	}
	if xdg := Getenv(env.Environ, "XDG_CONFIG_HOME"); xdg != "" {
		files = append(files, filepath.Join(xdg, "git", "config"))
	} else if cfg.Paths.Home != "" {
		files = append(files, filepath.Join(cfg.Paths.Home, ".config", "git", "config"))
	}
	return files
}

// buildName identifies this build of the program, also among builds of the same
// version, such as those of a developer who changes how packs are read. It is empty
// if the build is not known.
func buildName(version string) string {
	file, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s, %d bytes of %d", version, info.Size(), info.ModTime().UnixNano())
}

// CompletePacks offers the ids of all packs to the shell.
func (env *Env) CompletePacks(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, logger, err := env.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lib, err := env.Library(cmd.Context(), cfg, logger)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ids []string
	for _, p := range lib.Catalog(cmd.Context()).All() {
		if !slices.Contains(given, p.ID) {
			ids = append(ids, p.ID+"\t"+OneLine(p.Description, 60))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// First makes a completion offer values for the first argument only.
func First(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, begun)
	}
}

// Folders has the shell complete names of folders.
func Folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
