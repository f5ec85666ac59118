package packfs

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many symlinks one path may lead through; Linux allows as many.
const maxLinks = 40

// Resolve returns where name leads, through symlinks that stay inside: the clean path
// of what is no symlink, and has none on the way to it. What it says is of this
// moment; who reads what is there compares it with what it should be, as
// [Dir.ReadVerified] does.
func (d *Dir) Resolve(name string) (string, error) {
	clean, err := Clean(name)
	if err != nil {
		return "", err
	}
	if err := d.hides(clean); err != nil {
		return "", &PathError{name, err}
	}
	at, links := ".", 0
	for rest := strings.Split(clean, "/"); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..": // behind a symlink: above what that leads to
			if at == "." {
				return "", &PathError{name, ErrOutside}
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		target, err := d.root.Readlink(filepath.FromSlash(next))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return "", &PathError{name, ErrNotFound}
		case err != nil: // no symlink
			at = next
			continue
		}
		target = filepath.ToSlash(target)
		switch links++; {
		case links > maxLinks:
			return "", &PathError{name, ErrNotRegular}
		case path.IsAbs(target), filepath.IsAbs(target), filepath.VolumeName(target) != "":
			return "", &PathError{name, ErrOutside}
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}
