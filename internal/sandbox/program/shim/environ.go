package shim

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// An Environ is the user's environment: KEY=value, as from os.Environ.
type Environ []string

// Home returns the user's home folder, or "".
func (e Environ) Home() string {
	if runtime.GOOS == "windows" {
		return e.path("USERPROFILE")
	}
	return e.path("HOME")
}

// inHome returns a path below the home folder, or "" if that is not known.
func (e Environ) inHome(name string) string {
	if home := e.Home(); home != "" {
		return filepath.Join(home, name)
	}
	return ""
}

// Get returns the value of one of the user's environment variables.
func (e Environ) Get(name string) string {
	for _, kv := range slices.Backward(e) {
		if n, value, ok := strings.Cut(kv, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// path is Get for a variable that holds an absolute path. It returns "" for any other
// value.
func (e Environ) path(name string) string {
	if value := e.Get(name); filepath.IsAbs(value) && !strings.ContainsRune(value, 0) {
		return filepath.Clean(value)
	}
	return ""
}
