package paths

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A Link is a symbolic link that was met on a path.
type Link struct {
	Path   string // absolute; no other link leads to it
	Target string // as stored; it may be relative
}

// maxLinks is how many links the kernel follows on the way to one file.
const maxLinks = 40

// Trail follows path as the system does. It returns the links that it meets, and the
// stops at the end of the path, the last of which is no link. There are no stops if
// the path leads nowhere.
func Trail(path string) (stops []string, links []Link) {
	if runtime.GOOS == "windows" {
		// On Windows, no run needs to be shown a link.
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, nil
		}
		return []string{filepath.Clean(path), resolved}, nil
	}
	at, rest := "/", strings.Split(path, "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return nil, nil
		}
		if len(rest) == 0 {
			stops = append(stops, next)
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil || len(links) == maxLinks {
			return nil, nil
		}
		links = append(links, Link{next, target})
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(strings.TrimRight(target, "/"), "/"), rest...)
	}
	return stops, links
}

// Places returns the links that the system follows from an absolute path, and finally
// the target, which is no link. It returns none if the path leads nowhere.
func Places(path string) []string {
	stops, links := Trail(path)
	for _, l := range links {
		stops = append(stops, l.Path)
	}
	return stops
}
