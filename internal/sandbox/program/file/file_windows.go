package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// Executable says why the file at path cannot be run, or returns "". It also returns an
// error if the file was not found.
func Executable(path string) (problem string, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist", err
	case err != nil:
		return "cannot be reached: " + paths.Cause(err), err
	case info.IsDir():
		return "is a directory", nil
	case !info.Mode().IsRegular():
		return "is not a regular file", nil
	case !strings.EqualFold(filepath.Ext(path), ".exe"):
		return "is not an .exe program", nil
	}
	return "", nil
}

// WritableByOthers returns false: Go makes up the mode on Windows, so it tells
// nothing.
func WritableByOthers(os.FileInfo) bool { return false }

// Fixed is only needed for the interpreters of scripts, which Windows does not have.
func Fixed(string) bool { return false }

// SystemOwned reports false: a stamp on Windows is not exact enough to rely on.
func SystemOwned(string) bool { return false }
