package shim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// voltaRoot returns VOLTA_HOME for a shim in dir.
func (e Environ) voltaRoot(dir string) string {
	if parent := filepath.Dir(dir); file.IsDir(filepath.Join(parent, "tools")) {
		return parent
	}
	return cmp.Or(e.path("VOLTA_HOME"), e.inHome(".volta"))
}

// A voltaPlatform is a set of versions.
type voltaPlatform struct {
	Node, Npm, Pnpm, Yarn string
	source                string
}

// volta looks for Node's own programs in the versions that the project's package.json
// pins or, without pins, in the user's default versions. It looks for other programs in
// the packages that the user installed with Volta. It does not follow a program of one of
// the project's dependencies: that is a file of the project, which a run may change. A
// package's program runs with the project's Node, not with the one that it was installed
// with.
func (s *Shim) volta() (string, error) {
	project, depends, err := s.voltaProject()
	if err != nil {
		return "", err
	}
	user, err := s.voltaDefault()
	if err != nil {
		return "", err
	}
	platform := user
	if project.Node != "" {
		platform = project
		platform.Yarn = cmp.Or(project.Yarn, user.Yarn)
		platform.Pnpm = cmp.Or(project.Pnpm, user.Pnpm)
	}
	tool, version := "node", platform.Node
	switch s.Name {
	case "node":
	case "npm", "npx":
		if platform.Npm != "" {
			tool, version = "npm", platform.Npm
		}
	case "yarn", "yarnpkg":
		tool, version = "yarn", platform.Yarn
	case "pnpm":
		if s.o.Environ.Get("VOLTA_FEATURE_PNPM") == "" {
			return s.voltaPackage(depends)
		}
		tool, version = "pnpm", platform.Pnpm
	default:
		return s.voltaPackage(depends)
	}
	if version == "" {
		return "", ErrOnPath
	}
	if err := checkName("version", version, platform.source); err != nil {
		return "", err
	}
	path := filepath.Join(s.root, "tools/image", tool, version, "bin", s.Name)
	if !file.Runnable(path) {
		return "", fmt.Errorf("version %q of %s, which %s names, is not installed", version, tool, platform.source)
	}
	return path, nil
}

// voltaProject returns the versions that the nearest package.json pins, and the
// packages that it depends on.
func (s *Shim) voltaProject() (platform voltaPlatform, depends []string, err error) {
	for _, dir := range s.versionDirs() {
		if filepath.Base(filepath.Dir(dir)) == "node_modules" {
			continue
		}
		file := filepath.Join(dir, "package.json")
		var manifest struct {
			Volta *struct {
				voltaPlatform
				Extends string
			}
			Dependencies, DevDependencies map[string]any
		}
		err := s.readJSON(file, &manifest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return platform, nil, err
		}
		for _, d := range []map[string]any{manifest.Dependencies, manifest.DevDependencies} {
			for name := range d {
				depends = append(depends, name)
			}
		}
		if v := manifest.Volta; v != nil {
			if v.Extends != "" || v.Node == "" {
				return platform, nil, fmt.Errorf("%q has the rest of its versions from elsewhere", file)
			}
			platform = v.voltaPlatform
			platform.source = fmt.Sprintf("%q", file)
		}
		return platform, depends, nil
	}
	return platform, nil, nil
}

// voltaDefault returns the user's own versions.
func (s *Shim) voltaDefault() (voltaPlatform, error) {
	file := filepath.Join(s.root, "tools/user/platform.json")
	var p struct {
		Node       struct{ Runtime, Npm string }
		Pnpm, Yarn string
	}
	if err := s.readJSON(file, &p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return voltaPlatform{}, err
	}
	return voltaPlatform{p.Node.Runtime, p.Node.Npm, p.Pnpm, p.Yarn, fmt.Sprintf("%q", file)}, nil
}

// voltaPackage returns the program of a package that the user has installed.
func (s *Shim) voltaPackage(depends []string) (string, error) {
	manifest := filepath.Join(s.root, "tools/user/bins", s.Name+".json")
	var bin struct{ Name, Package string }
	err := s.readJSON(manifest, &bin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", ErrOnPath
	case err != nil:
		return "", err
	case bin.Name != s.Name || bin.Package == "" || !filepath.IsLocal(bin.Package):
		return "", fmt.Errorf("%q names no package", manifest)
	case slices.Contains(depends, bin.Package):
		return "", errors.New("the project has its own copy, which would be started instead")
	}
	root := filepath.Join(s.root, "tools/image/packages")
	path := filepath.Join(root, bin.Package, "bin", s.Name)
	if path == filepath.Join(root, "bin", s.Name) || !file.Runnable(path) {
		return "", fmt.Errorf("its package, which %q names, is not installed", manifest)
	}
	return path, nil
}

func (s *Shim) readJSON(file string, v any) error {
	text, err := s.read(file)
	if err != nil || text == "" {
		return err
	}
	if json.Unmarshal([]byte(text), v) != nil { // the decoder's error would quote the file
		return fmt.Errorf("%q is not the JSON that it should be", file)
	}
	return nil
}
