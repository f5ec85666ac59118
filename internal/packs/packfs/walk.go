package packfs

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Sub opens a directory below d, following symlinks that stay inside. It is a separate Dir:
// nothing above it can be reached, and the caller closes it.
func (d *Dir) Sub(name string) (*Dir, error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, err
	}
	if err := d.hides(clean); err != nil {
		return nil, &PathError{name, err}
	}
	root, err := d.root.sub(filepath.FromSlash(clean))
	if err != nil {
		return nil, &PathError{name, reason(err)}
	}
	return &Dir{root: root, refuseHardLinks: d.refuseHardLinks, only: d.only, maxTree: d.maxTree}, nil
}

// Stat describes a regular file of the kind that [Dir.Digest] covers: neither it nor a
// parent directory is a symlink.
func (d *Dir) Stat(name string) (fs.FileInfo, error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, err
	}
	if err := d.hides(clean); err != nil {
		return nil, &PathError{name, err}
	}
	var info fs.FileInfo
	for end := 0; end < len(clean); end++ {
		rest := strings.IndexByte(clean[end:], '/')
		if rest < 0 {
			rest = len(clean) - end
		}
		end += rest
		if info, err = d.root.Lstat(filepath.FromSlash(clean[:end])); err != nil {
			return nil, &PathError{name, reason(err)}
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, &PathError{name, ErrNotRegular}
		}
	}
	if err := regular(info); err != nil {
		return nil, &PathError{name, err}
	}
	return info, nil
}

// Names returns the entries of the directory itself, sorted by name. Only Name, Type and
// IsDir of an entry may be called. It returns at most limit entries; if there are more,
// truncated is true.
func (d *Dir) Names(limit int) (entries []fs.DirEntry, truncated bool, err error) {
	return d.NamesOf(limit, nil)
}

// NamesOf is [Dir.Names] for the names for which keep returns true, given the type of each.
// The other names count towards limit as well. A nil keep keeps every name.
func (d *Dir) NamesOf(limit int, keep func(name string, mode fs.FileMode) bool) (entries []fs.DirEntry, truncated bool, err error) {
	entries, truncated, err = d.root.names(limit, keep)
	if err != nil {
		return nil, false, &PathError{".", reason(err)}
	}
	if d.only != "" {
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() != d.only })
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, truncated, nil
}
