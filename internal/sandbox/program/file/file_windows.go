package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

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

// WritableByOthers cannot be told from the mode that Go makes up on Windows.
func WritableByOthers(os.FileInfo) bool { return false }

// Fixed is asked only where the first line of a script counts.
func Fixed(string) bool { return false }

// SystemOwned is of use only where a stamp is exact.
func SystemOwned(string) bool { return false }
