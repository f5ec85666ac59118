package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// maxString is the size of one argument or environment entry, in bytes, that every
// Linux passes on (MAX_ARG_STRLEN without the final NUL); it applies to other
// systems, too, so that a pack behaves the same on all.
const maxString = 128<<10 - 1

// checkPolicy returns a [*sandbox.CommandError] for a Policy that no run can have.
func checkPolicy(p *sandbox.Policy) error {
	for _, f := range []struct {
		what  string
		paths []string
	}{{"readable", p.ReadOnly}, {"writable", p.Writable}, {"private", p.Private}} {
		for _, path := range f.paths {
			switch {
			case !filepath.IsAbs(path):
				return &sandbox.CommandError{Problem: fmt.Sprintf("%s path %q is not absolute", f.what, path)}
			case strings.ContainsRune(path, 0):
				return &sandbox.CommandError{Problem: fmt.Sprintf("%s path %q has a NUL byte", f.what, path)}
			}
		}
	}
	for _, l := range p.Links {
		if !filepath.IsAbs(l.Path) || strings.ContainsRune(l.Path, 0) || strings.ContainsRune(l.Target, 0) || l.Target == "" {
			return &sandbox.CommandError{Problem: fmt.Sprintf("link %q to %q is not one from an absolute path", l.Path, l.Target)}
		}
	}
	for _, l := range p.Layers {
		if !filepath.IsAbs(l.Folder) || filepath.Clean(l.Folder) != l.Folder || strings.ContainsRune(l.Folder, 0) {
			return &sandbox.CommandError{Problem: fmt.Sprintf("layered folder %q is not absolute and clean", l.Folder)}
		}
	}
	if p.Cache != "" && (!filepath.IsAbs(p.Cache) || filepath.Clean(p.Cache) != p.Cache || strings.ContainsRune(p.Cache, 0)) {
		return &sandbox.CommandError{Problem: fmt.Sprintf("cache %q is not absolute and clean", p.Cache)}
	}
	if (p.Network == sandbox.NetworkHosts) != (len(p.Hosts) > 0) {
		return &sandbox.CommandError{Problem: fmt.Sprintf("the network %q comes with %d hosts", p.Network, len(p.Hosts))}
	}
	if t := p.Together; t.Memory < 0 || t.Processors < 0 {
		return &sandbox.CommandError{Problem: fmt.Sprintf("the bounds on all processes together are negative: %+v", t)}
	}
	return checkLimits(p.Limits)
}

func checkLimits(l sandbox.Limits) error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"timeout", int64(l.Timeout)}, {"cpu", int64(l.CPU)}, {"memory", l.Memory},
		{"processes", int64(l.Processes)}, {"open_files", int64(l.OpenFiles)},
		{"file_size", l.FileSize}, {"workspace", l.Workspace}, {"layer", l.Layer}, {"layer_names", int64(l.LayerNames)},
		{"cache", l.Cache}, {"cache_names", int64(l.CacheNames)}, {"output", int64(l.Output)},
		{"output_markdown", int64(l.OutputMerged)}, {"output_total", l.OutputTotal},
	} {
		if f.value < 0 {
			return &sandbox.CommandError{Problem: fmt.Sprintf("limit %s is negative: %d", f.name, f.value)}
		}
	}
	return nil
}

// checkCommand returns a [*sandbox.CommandError] or a [*sandbox.TooLargeError] if c
// cannot be started. It does not look at the program's file.
func checkCommand(c *sandbox.Command) error {
	if c.Program.Path == "" || c.Program.Resolved == "" || c.Program.Digest == "" {
		return &sandbox.CommandError{Problem: fmt.Sprintf("program %q was not looked up", c.Program.Name)}
	}
	for _, f := range []struct{ what, path string }{
		{"program", c.Program.Path}, {"working folder", c.Dir}, {"workspace", c.Workspace},
	} {
		switch {
		case f.path == "" && f.what == "workspace":
			continue
		case strings.ContainsRune(f.path, 0):
			return &sandbox.CommandError{Problem: fmt.Sprintf("%s %q has a NUL byte", f.what, f.path)}
		case !filepath.IsAbs(f.path):
			return &sandbox.CommandError{Problem: fmt.Sprintf("%s %q is not an absolute path", f.what, f.path)}
		case f.what == "program":
			continue
		}
		if info, err := os.Stat(f.path); err != nil {
			return &sandbox.CommandError{Problem: fmt.Sprintf("%s %q", f.what, f.path), Err: errors.Unwrap(err)}
		} else if !info.IsDir() {
			return &sandbox.CommandError{Problem: fmt.Sprintf("%s %q is not a folder", f.what, f.path)}
		}
	}
	// The system would follow links on the way to the working folder, to a place that
	// nobody approved.
	if resolved, err := filepath.EvalSymlinks(c.Dir); err != nil {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: err}
	} else if !paths.Same(resolved, c.Dir) {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q is reached through a symbolic link", c.Dir)}
	}
	if err := checkDirID(c); err != nil {
		return err
	}
	if !validRunID(c.RunID) {
		return &sandbox.CommandError{Problem: fmt.Sprintf("run id %q is not 1 to 64 of A-Z, a-z, 0-9, _ and -", c.RunID)}
	}
	for i, arg := range c.Args {
		if err := checkString(fmt.Sprintf("argument %d", i+1), arg); err != nil {
			return err
		}
	}
	for i, kv := range c.Env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			return &sandbox.CommandError{Problem: fmt.Sprintf("environment entry %d is not NAME=value", i+1)}
		}
		if err := checkString(fmt.Sprintf("environment variable %q", name), kv); err != nil {
			return err
		}
	}
	return nil
}

// checkDirID returns an error if the folder at Dir is not the one that DirID
// identifies.
func checkDirID(c *sandbox.Command) error {
	if c.DirID == nil {
		return nil
	}
	info, err := os.Lstat(c.Dir)
	if err != nil {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: errors.Unwrap(err)}
	}
	if !info.IsDir() || !os.SameFile(info, c.DirID) {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q is not the folder it was", c.Dir)}
	}
	return nil
}

// openWorkspace opens the workspace. If there is a WorkspaceID, it must be that
// folder.
func openWorkspace(c *sandbox.Command) (*os.Root, error) {
	root, err := os.OpenRoot(c.Workspace)
	if err != nil {
		return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("workspace %q", c.Workspace), Err: errors.Unwrap(err)}
	}
	if c.WorkspaceID == nil {
		return root, nil
	}
	at, err := os.Lstat(c.Workspace)
	var opened os.FileInfo
	if err == nil {
		opened, err = root.Stat(".")
	}
	switch {
	case err != nil:
		err = &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("workspace %q", c.Workspace), Err: errors.Unwrap(err)}
	case !at.IsDir() || !os.SameFile(opened, c.WorkspaceID):
		err = &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("workspace %q is not the folder it was", c.Workspace)}
	default:
		return root, nil
	}
	_ = root.Close()
	return nil, err
}

func checkString(what, s string) error {
	switch {
	case strings.ContainsRune(s, 0):
		return &sandbox.CommandError{Problem: what + " has a NUL byte"}
	case len(s) > maxString:
		return &sandbox.TooLargeError{What: what, Size: len(s), Limit: maxString}
	}
	return nil
}

// validRunID reports whether id is empty or may be part of a file name.
func validRunID(id string) bool {
	return len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return false
		}
		return true
	})
}
