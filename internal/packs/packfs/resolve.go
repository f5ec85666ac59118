package packfs

import (
	"path"
	"path/filepath"
	"strings"
)

// maxLinks is how many symlinks a path may follow, as on Linux.
const maxLinks = 40

// Resolve returns the regular file that a clean path leads to through the digested
// symlinks, whatever these are now; ok is false if there is none. A path through an
// absolute link, or one that leaves the directory, leads nowhere.
func (t *Tree) Resolve(name string) (_ TreeFile, ok bool) {
	at, ok := t.follow(name)
	if !ok {
		return TreeFile{}, false
	}
	return t.File(at)
}

// follow resolves the digested symlinks in a clean path. ok is false if it leads out of the
// tree.
func (t *Tree) follow(name string) (_ string, ok bool) {
	at, links := ".", 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..": // after a symlink: the parent of its target
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
