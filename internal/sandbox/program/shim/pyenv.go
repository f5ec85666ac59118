package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// pyenvRoot returns PYENV_ROOT as a shim of pyenv sets it.
func pyenvRoot(text string) (string, bool) {
	var root string
	var execs bool
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if v, ok := strings.CutPrefix(line, `export PYENV_ROOT="`); ok {
			root, ok = strings.CutSuffix(v, `"`)
			if !ok || !filepath.IsAbs(root) {
				return "", false
			}
		}
		execs = execs || strings.HasPrefix(line, "exec ") && strings.HasSuffix(line, `pyenv" exec "$program" "$@"`)
	}
	return filepath.Clean(root), root != "" && execs
}

// pyenv looks through the versions of PYENV_VERSION, of the nearest
// .python-version, or else of the file "version" of PYENV_ROOT. If none of them has the
// program, the rest of PATH counts. pyenv's hooks are not run.
func (s *Shim) pyenv() (string, error) {
	versions, source, err := s.pyenvVersions()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.root, "versions")
	for _, version := range versions {
		if version == "system" {
			return "", ErrOnPath
		}
		if err := checkName("version", version, source); err != nil {
			return "", err
		}
		installed, ok := latest(dir, version)
		if !ok {
			installed, ok = latest(dir, strings.TrimPrefix(version, "python-"))
		}
		if !ok {
			return "", fmt.Errorf("version %q, which %s names, is not installed", version, source)
		}
		if path := filepath.Join(dir, installed, "bin", s.Name); file.Runnable(path) {
			return path, nil
		}
	}
	return "", ErrOnPath
}

func (s *Shim) pyenvVersions() (versions []string, source string, err error) {
	if v := s.o.Environ.Get("PYENV_VERSION"); v != "" {
		return strings.Split(v, ":"), "PYENV_VERSION", nil
	}
	var files []string
	for _, dir := range s.versionDirs() {
		files = append(files, filepath.Join(dir, ".python-version"))
	}
	for _, file := range append(files, filepath.Join(s.root, "version")) {
		text, err := s.read(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, "", err
		}
		for line := range strings.Lines(text) {
			// Only the first word of a line counts. It may name several versions.
			if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
				versions = append(versions, strings.Split(words[0], ":")...)
			}
		}
		if len(versions) > 0 {
			return versions, fmt.Sprintf("%q", file), nil
		}
		break
	}
	return []string{"system"}, "", nil
}
