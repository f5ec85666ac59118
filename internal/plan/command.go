package plan

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// folder returns the folder in which a tool runs.
func (p *Planner) folder(c *Call, cwd string) (string, error) {
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
	// It came from a placeholder, and the caller's values must not choose any folder.
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
	return "", &FolderError{Folder: cwd, Problem: FolderOutside}
}

// within reports whether path is dir or below it.
func within(path, dir string) bool { return paths.Inside([]string{dir}, path) }

// command finds the program and sets its environment. It refuses a program of another
// pack, and a command that names a denied file of the pack.
func (p *Planner) command(ctx context.Context, c *Call, at Elsewhere, inv *tools.Invocation, dir string, may *permissions) (sandbox.Command, error) {
	exclude := []string{c.Pack.Dir, c.Workspace}
	home := cmp.Or(may.granted.Home, c.Workspace)
	program, base, err := p.lookup(ctx, c, at, inv.Program, home, exclude)
	if err != nil {
		return sandbox.Command{}, err
	}
	owner := c.owner()
	for _, path := range programFiles(program) {
		if err := owner.refuse(path); err != nil {
			return sandbox.Command{}, err
		}
	}
	folder, err := os.Lstat(dir)
	if err != nil {
		return sandbox.Command{}, &FolderError{Folder: dir, Problem: FolderUnusable}
	}
	ours := []string{"PACKS_PACK_ID=" + c.Pack.ID, "PACKS_PACK_DIR=" + c.Pack.Dir, "PACKS_WORKSPACE=" + c.Workspace}
	command := sandbox.Command{
		Program: program, Args: inv.Args, Dir: dir, Stdin: inv.Stdin,
		Env:       sandbox.MergeEnv(putFirst(base, program.PathDirs()), inv.Env, may.env, ours),
		Workspace: c.Workspace, DirID: folder, WorkspaceID: c.Folder,
	}
	if at == nil { // elsewhere, lookup already used the PATH of that place
		if err := command.CheckSearch(); err != nil {
			return sandbox.Command{}, err
		}
	}
	// A file that the pack's digest denies is in no private copy of the pack, so a
	// command that names it cannot work.
	named := slices.Concat(programFiles(program), []string{program.Resolved}, command.Args, command.Env)
	if err := toolfiles.DeniedIn(c.Pack, c.Tree, dir, named); err != nil {
		return sandbox.Command{}, err
	}
	return command, nil
}

// lookup finds a program in the place where it will run, and the variables that every
// program has there.
func (p *Planner) lookup(ctx context.Context, c *Call, at Elsewhere, name, home string, exclude []string) (program.Program, []string, error) {
	if at == nil {
		found, err := p.opts.Programs.Lookup(name, program.LookupOptions{
			Path: variable(p.opts.Environ, "PATH"), Exclude: exclude, PackDir: c.Pack.Dir,
			Environ: p.opts.Environ, Dir: cmp.Or(p.opts.Project, p.opts.Dir),
		})
		return found, sandbox.BaseEnv(p.opts.Environ, sandbox.EnvOptions{Home: home, Exclude: exclude}), err
	}
	env, err := at.Environ(ctx)
	if err != nil {
		return program.Program{}, nil, err
	}
	digest := "" // the digest of a loose tool does not cover its whole folder
	if c.Tree != nil && !c.Pack.Loose {
		digest = c.Tree.Digest
	}
	found, err := at.Lookup(ctx, name, c.Pack.Dir, digest)
	return found, sandbox.MergeEnv(env, []string{"TERM=dumb", "HOME=" + home}), err
}
