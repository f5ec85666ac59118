package program

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// systemNameProblem refuses what Windows would hand to a command interpreter,
// and names that Windows reads as another file's.
func systemNameProblem(name string) string { return windowsNameProblem(name) }

func executableName(name string) string {
	if strings.EqualFold(filepath.Ext(name), ".exe") {
		return name
	}
	return name + ".exe"
}

func executable(path string) (problem string, err error) {
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

// writableByOthers cannot be told from the mode that Go makes up on Windows.
func writableByOthers(os.FileInfo) bool { return false }

// fixed is asked only where the first line of a script counts.
func fixed(string) bool { return false }

// systemOwned is of use only where a stamp is exact.
func systemOwned(string) bool { return false }
