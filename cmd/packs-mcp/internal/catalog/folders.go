package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

func (a *app) foldersCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "folders",
		Short: "Show the folders that packs come from, add and remove them",
		Long: `Show the folders that packs come from. Those that you add are kept in the configuration, so
that every server and command knows them; --packs is for one server or command.`,
		Example: `  packs-mcp folders
  packs-mcp folders add ~/packs
  packs-mcp folders remove ~/packs`,
		Args: cli.Misuse(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.folders(cmd.Context(), asJSON) },
	}
	a.PackFlags(cmd)
	cli.JSONFlag[folderList](a.Env, cmd, &asJSON)
	cmd.AddCommand(a.foldersAddCommand(), a.foldersRemoveCommand())
	return cmd
}

func (a *app) foldersAddCommand() *cobra.Command {
	var found, asJSON bool
	cmd := &cobra.Command{
		Use:   "add DIR...",
		Short: "Remember a folder of packs, and attach its packs",
		Example: `  packs-mcp folders add ~/packs
  packs-mcp folders add ~/downloads/packs --found-only`,
		Args:              cli.Needs(1, -1, "a folder"),
		ValidArgsFunction: cli.Folders,
		RunE: func(_ *cobra.Command, dirs []string) error {
			return a.eachFolder(dirs, asJSON, func(cfg *config.Config, dir string) (string, error) { return a.addFolder(cfg, dir, found) })
		},
	}
	cmd.Flags().BoolVar(&found, "found-only", false, "do not attach its packs: models see them when you attach them")
	cli.JSONFlag[changedFolders](a.Env, cmd, &asJSON)
	a.ConfigFlag(cmd)
	return cmd
}

func (a *app) foldersRemoveCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "remove DIR...",
		Aliases: []string{"delete"},
		Short:   "Forget a folder of packs, and leave it as it is",
		Example: `  packs-mcp folders remove ~/packs`,
		Args:    cli.Needs(1, -1, "a folder"),
		ValidArgsFunction: func(*cobra.Command, []string, string) (all []string, _ cobra.ShellCompDirective) {
			cfg, _, err := a.Load()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, root := range cfg.Packs {
				if root.Source == config.FromFile {
					all = append(all, root.Path)
				}
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, dirs []string) error { return a.eachFolder(dirs, asJSON, a.removeFolder) },
	}
	cli.JSONFlag[changedFolders](a.Env, cmd, &asJSON)
	a.ConfigFlag(cmd)
	return cmd
}

// changedFolders is what folders add --json and folders remove --json print.
type changedFolders struct {
	Folders []changedFolder `json:"folders"`
}

type changedFolder struct {
	Path   string `json:"path"`
	Result string `json:"result"` // "added", "removed" or "already there"
}

// eachFolder calls do for each folder, and prints the result.
func (a *app) eachFolder(dirs []string, asJSON bool, do func(*config.Config, string) (said string, err error)) error {
	changed := changedFolders{Folders: []changedFolder{}}
	for _, dir := range dirs {
		full, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		cfg, _, err := a.Load() // again, since each call changes the file
		if err != nil {
			return err
		}
		said, err := do(cfg, full)
		if err != nil {
			return err
		}
		if changed.Folders = append(changed.Folders, changedFolder{full, strings.TrimSuffix(said, ":")}); !asJSON {
			fmt.Fprintf(a.Stdout, "%s %s\n", said, safetext.Line(full))
		}
	}
	if asJSON {
		return cli.PrintJSON(a.Stdout, changed)
	}
	return nil
}

// remembered returns the index of a folder in the configuration file, or -1.
func remembered(cfg *config.Config, dir string) int {
	i := 0
	for _, root := range cfg.Packs {
		if root.Source != config.FromFile {
			continue
		}
		if root.Path == dir {
			return i
		}
		i++
	}
	return -1
}

func (a *app) addFolder(cfg *config.Config, dir string, foundOnly bool) (string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", cli.WithHint(fmt.Errorf("there is no folder %q", dir), "make it first, or name another")
	}
	if remembered(cfg, dir) >= 0 {
		return "already there:", nil
	}
	var item any = dir
	if !foundOnly {
		item = configedit.Object{{Key: "path", Value: dir}, {Key: "attach", Value: "all"}}
	}
	return "added", a.editPacks(cfg, func(text []byte) ([]byte, error) {
		return configedit.YAML().Append(text, []string{"packs"}, item)
	}, fmt.Sprintf("add this to packs: in it: {path: %q, attach: all}", dir))
}

func (a *app) removeFolder(cfg *config.Config, dir string) (string, error) {
	i := remembered(cfg, dir)
	if i < 0 {
		return "", cli.WithHint(fmt.Errorf("the configuration does not name the folder %q", dir), "see: packs-mcp folders")
	}
	return "removed", a.editPacks(cfg, func(text []byte) ([]byte, error) {
		return configedit.YAML().Drop(text, []string{"packs"}, i)
	}, "remove the folder from packs: in it")
}

// editPacks changes the configuration's list of folders.
func (a *app) editPacks(cfg *config.Config, change func([]byte) ([]byte, error), byHand string) error {
	path := cfg.File
	if path == "" {
		path = cfg.Paths.Config
	}
	file, err := configedit.Read(path)
	if err != nil {
		return err
	}
	text, err := change(file.Text)
	if errors.Is(err, configedit.ErrShape) {
		return cli.WithHint(fmt.Errorf("%s: packs is written in a way that this command does not change", path), "%s", byHand)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := file.Replace(text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// A folderList is what folders --json prints.
type folderList struct {
	Folders []folder `json:"folders"`
}

// A folder is a place where packs are looked for, as folders --json prints it.
type folder struct {
	Path     string `json:"path"`
	Source   string `json:"source"` // "config", "flag", …
	Exists   bool   `json:"exists"`
	Packs    int    `json:"packs"`
	Attached int    `json:"attached"` // packs that a model sees
	Invalid  int    `json:"invalid"`
}

func (a *app) folders(ctx context.Context, asJSON bool) error {
	cfg, logger, err := a.Load()
	if err != nil {
		return err
	}
	lib, err := a.Library(ctx, cfg, logger)
	if err != nil {
		return err
	}
	catalog := lib.Catalog(ctx)
	all := []folder{}
	for _, root := range a.Roots(cfg, a.PacksFolder(cfg)) {
		f := folder{Path: root.Dir, Source: root.Source}
		if info, err := os.Stat(root.Dir); err == nil {
			f.Exists = info.IsDir()
		}
		if !f.Exists && root.Optional {
			continue
		}
		for _, p := range catalog.All() {
			if p.Root != root.Dir || p.Source != root.Source {
				continue
			}
			f.Packs++
			switch {
			case isListed(p):
				f.Attached++
			case !p.Valid && !p.IsUnread():
				f.Invalid++
			}
		}
		all = append(all, f)
	}
	if asJSON {
		return cli.PrintJSON(a.Stdout, folderList{all})
	}
	out, invalid := a.Screen(a.Stdout), 0
	for _, f := range all {
		state := fmt.Sprintf("%s, %d attached", cli.Counted(f.Packs, "pack", "packs"), f.Attached)
		if f.Invalid > 0 {
			state += fmt.Sprintf(", %d invalid", f.Invalid)
		}
		state += " (" + f.Source + ")"
		if !f.Exists {
			state = out.Style(cli.Yellow, fmt.Sprintf("it does not exist (%s)", f.Source))
		}
		fmt.Fprintf(out, "%s\n  %s\n", out.Style(cli.Bold, safetext.Line(f.Path)), state)
		invalid += f.Invalid
	}
	switch {
	case len(all) == 0:
		fmt.Fprintln(a.Screen(a.Stderr), "No folders yet. Add one: packs-mcp folders add DIR")
	case invalid > 0:
		fmt.Fprintln(a.Screen(a.Stderr), "packs-mcp list --all says what is wrong with invalid packs.")
	}
	return nil
}
