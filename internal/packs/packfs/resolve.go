package packfs

import (
	"path"
	"path/filepath"
	"strings"
)

// maxLinks is how many symlinks one path may lead through; Linux allows as many.
const maxLinks = 40

// Resolve returns the regular file that a clean path leads to by the symlinks that
// were digested, whatever they are by now; ok is false when it leads to none. A path
// through a link that leaves the directory, or is absolute, leads nowhere.
func (t *Tree) Resolve(name string) (_ TreeFile, ok bool) {
	at, ok := t.follow(name)
	if !ok {
		return TreeFile{}, false
	}
	return t.File(at)
}

// follow returns the path that a clean path leads to by the symlinks that were
// digested; ok is false when it leads out of the tree.
func (t *Tree) follow(name string) (_ string, ok bool) {
	at, links := ".", 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..": // behind a symlink: above what that leads to
			if at == "." {
				return "", false
			}
			at = path.Dir(at)
			continue
		}
		at = path.Join(at, part)
		target, isLink := t.links[at]
		if !isLink {
			continue
		}
		if links++; links > maxLinks || path.IsAbs(target) || filepath.IsAbs(target) || filepath.VolumeName(target) != "" {
			return "", false
		}
		at = path.Dir(at)
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, true
}
