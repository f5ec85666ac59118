// Package paths says what a path means on this machine: what is inside what, where
// links lead, which folders are the system's, and whether a file is unchanged.
//
// It only looks. It does not say what a run may read or change; package sandbox
// does.
package paths

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// Spellings returns dirs, together with their paths with symbolic links resolved.
func Spellings(dirs []string) []string {
	var all []string
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		all = append(all, filepath.Clean(dir))
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			all = append(all, resolved)
		}
	}
	return all
}

// Same reports whether both absolute paths are spelled the same, as the
// system compares them.
func Same(a, b string) bool {
	a, b = filepath.Clean(a), filepath.Clean(b)
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// Inside reports whether path is one of dirs or below one of them. All are
// absolute and clean.
func Inside(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		_, ok := Below(dir, path)
		return ok
	})
}

// Below returns path relative to dir, "." for dir itself, and reports whether it is
// there or below. Both are absolute and clean.
func Below(dir, path string) (rel string, ok bool) {
	if runtime.GOOS != "windows" && isClean(dir) && isClean(path) && !strings.HasPrefix(path, dir) {
		return "", false // true of most paths, in a fraction of the time
	}
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// isClean reports whether path is absolute and has nothing that [filepath.Clean] would
// change. It may return false for a name that begins with "..".
func isClean(path string) bool {
	return strings.HasPrefix(path, "/") && (len(path) == 1 || path[len(path)-1] != '/') &&
		!strings.Contains(path, "//") && !strings.Contains(path, "/..") && !strings.Contains(path, "/./") && !strings.HasSuffix(path, "/.")
}

// Within reports whether dir is folder or below it, by whatever paths both are named:
// through links, in another letter case, or mounted at two places. A missing folder
// contains nothing. If a folder cannot be examined, Within returns true.
func Within(folder, dir string) bool {
	want, err := os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false
	}
	if err != nil {
		return true
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved // its parents are those of its target
	}
	for at := filepath.Clean(dir); ; {
		info, err := os.Stat(at)
		if err == nil && os.SameFile(info, want) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true
		}
		up := filepath.Dir(at)
		if up == at {
			return false
		}
		at = up
	}
}

// WithoutLinks returns path with symbolic links resolved, as far as it exists.
func WithoutLinks(path string) string {
	if _, err := os.Lstat(path); err == nil { // otherwise each folder above it would be examined in vain
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			return resolved
		}
	}
	if parent := filepath.Dir(path); filepath.IsAbs(path) && parent != path {
		return filepath.Join(WithoutLinks(parent), filepath.Base(path))
	}
	return path
}

// Cause returns the text of err without the path, for callers that name the path
// themselves.
func Cause(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
