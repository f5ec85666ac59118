package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/launch"
)

// Locate returns where an entry's command is. It looks for a name without a folder on
// PATH. A relative path is an error, since only the client knows its folder.
func Locate(command string) (string, error) {
	if isRelative(command) {
		return "", fmt.Errorf("%q is relative to a folder that only the client knows", command)
	}
	if !filepath.IsAbs(command) {
		found, err := launch.LookPath(command)
		if err != nil {
			return "", err
		}
		command = found
	}
	info, err := os.Stat(command)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a file", command)
	}
	return command, err
}

// IsThisProgram reports whether a command is the file that runs now. It does not
// start the command, which anybody may have written into a settings file.
func IsThisProgram(command string) (bool, error) {
	if isRelative(command) {
		return false, nil
	}
	path, err := Locate(command)
	if err != nil {
		return false, err
	}
	one, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	exe, err := os.Executable()
	if err != nil {
		return false, err
	}
	own, err := os.Stat(exe)
	return err == nil && os.SameFile(one, own), err
}

// MissingFolders returns the folders of packs that an entry's arguments name and that
// do not exist. It skips relative ones: only the client knows their base.
func MissingFolders(args []string) (missing []string) {
	for i, arg := range args {
		dir, ok := strings.CutPrefix(arg, "--packs=")
		if arg == "--packs" && i+1 < len(args) {
			dir, ok = args[i+1], true
		}
		if info, err := os.Stat(dir); ok && filepath.IsAbs(dir) && (err != nil || !info.IsDir()) {
			missing = append(missing, dir)
		}
	}
	return missing
}

func isRelative(command string) bool {
	return !filepath.IsAbs(command) && strings.ContainsAny(command, `/\`)
}
