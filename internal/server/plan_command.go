package server

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// folder is where a tool runs.
func (p *planner) folder(c *planCall, cwd string) (string, error) {
	switch cwd {
	case "", tools.CwdWorkspace:
		return c.Workspace, nil
	case tools.CwdPackRoot:
		return c.Pack.Dir, nil
	case tools.CwdProject:
		if p.opts.Project == "" {
			return c.Workspace, nil
		}
		return p.opts.Project, nil
	}
	// A placeholder gave it, and the caller's values must not choose freely.
	clean := filepath.Clean(cwd)
	for _, root := range []string{c.Workspace, p.opts.Project, c.Pack.Dir} {
		if root == "" {
			continue
		}
		full := clean
		if !filepath.IsAbs(full) {
			full = filepath.Join(root, full)
		}
		resolved, err := filepath.EvalSymlinks(full)
		if err == nil && within(resolved, root) {
			return resolved, nil
		}
	}
	return "", &folderError{Folder: cwd, Problem: folderOutside}
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// command finds the program and gives it its environment.
func (p *planner) command(c *planCall, inv *tools.Invocation, dir string, may *permissions) (sandbox.Command, error) {
	exclude := []string{c.Pack.Dir, c.Workspace}
	program, err := p.opts.Programs.Lookup(inv.Program, program.LookupOptions{
		Path: variable(p.opts.Environ, "PATH"), Exclude: exclude, PackDir: c.Pack.Dir,
		Environ: p.opts.Environ, Dir: cmp.Or(p.opts.Project, p.opts.Dir),
	})
	if err != nil {
		return sandbox.Command{}, err
	}
	owner := c.owner()
	for _, path := range programFiles(program) {
		if err := owner.refuse(path); err != nil {
			return sandbox.Command{}, err
		}
	}
	home := cmp.Or(may.granted.Home, c.Workspace)
	base := sandbox.BaseEnv(p.opts.Environ, sandbox.EnvOptions{Home: home, Exclude: exclude})
	folder, err := os.Lstat(dir)
	if err != nil {
		return sandbox.Command{}, &folderError{Folder: dir, Problem: folderUnusable}
	}
	ours := []string{"PACKS_PACK_ID=" + c.Pack.ID, "PACKS_PACK_DIR=" + c.Pack.Dir, "PACKS_WORKSPACE=" + c.Workspace}
	command := sandbox.Command{
		Program: program, Args: inv.Args, Dir: dir, Stdin: inv.Stdin,
		Env:       sandbox.MergeEnv(putFirst(base, program.PathDirs()), inv.Env, may.env, ours),
		Workspace: c.Workspace, DirID: folder, WorkspaceID: c.Folder,
	}
	return command, command.CheckSearch()
}

// putFirst returns env with dirs before the others of its PATH.
func putFirst(env, dirs []string) []string {
	if len(dirs) == 0 {
		return env
	}
	path := strings.Join(dirs, string(filepath.ListSeparator))
	if old := variable(env, "PATH"); old != "" {
		path += string(filepath.ListSeparator) + old
	}
	return sandbox.MergeEnv(env, []string{"PATH=" + path})
}

// skillEnv is what specs/skill-md-tools section 5.2 promises to tools.
func (p *planner) skillEnv(pack *packs.Pack) []string {
	return []string{
		"GIBBERISH_SKILL_NAME=" + strings.ReplaceAll(pack.Name, "\x00", ""),
		"GIBBERISH_SKILL_DIR=" + pack.Dir,
		"GIBBERISH_MODE=" + cmp.Or(p.opts.Mode, "Global"),
	}
}
