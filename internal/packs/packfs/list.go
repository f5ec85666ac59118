package packfs

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// MaxEntries is the maximum number of entries that List returns.
const MaxEntries = 1000

// maxNames bounds how many names of one directory are read.
const maxNames = 200_000

// An EntryType is the type of a directory entry. Links are not followed.
type EntryType string

// The types of entries.
const (
	TypeFile  EntryType = "file"
	TypeDir   EntryType = "dir"
	TypeLink  EntryType = "link"
	TypeOther EntryType = "other" // FIFO, socket, device
)

// An Entry is one name in a directory.
type Entry struct {
	Name string
	Type EntryType
	Size int64 // size of a file; 0 for others
}

// List returns the contents of a directory, sorted by name: the first MaxEntries entries,
// and whether there are more.
func (d *Dir) List(name string) (entries []Entry, truncated bool, err error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, false, err
	}
	if err := d.hides(clean); err != nil {
		return nil, false, &PathError{name, err}
	}
	root, err := d.disk()
	if err != nil {
		return nil, false, err
	}
	local := filepath.FromSlash(clean)
	info, err := root.Stat(local)
	if err != nil {
		return nil, false, &PathError{name, reason(err)}
	}
	if !info.IsDir() {
		return nil, false, &PathError{name, ErrNotDir}
	}
	names, truncated, err := d.names(root, local)
	if err != nil {
		return nil, false, &PathError{name, reason(err)}
	}
	for _, n := range names {
		// Not DirEntry.Info, which may look up the name by path.
		info, err := root.Lstat(filepath.Join(local, n))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		e := Entry{Name: n, Type: TypeOther}
		if err == nil {
			e.Type = typeOf(info.Mode())
			if e.Type == TypeFile {
				e.Size = info.Size()
			}
		}
		entries = append(entries, e)
	}
	return entries, truncated, nil
}

// names returns the first MaxEntries names in the directory. It never holds more than a
// few times as many in memory.
func (d *Dir) names(root *os.Root, local string) (names []string, truncated bool, err error) {
	if d.only != "" {
		return []string{d.only}, false, nil
	}
	f, err := root.OpenFile(local, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for seen := 0; ; {
		batch, err := f.Readdirnames(MaxEntries)
		names = append(names, batch...)
		seen += len(batch)
		if len(names) > 4*MaxEntries {
			slices.Sort(names)
			names, truncated = names[:MaxEntries], true
		}
		if errors.Is(err, io.EOF) || seen >= maxNames {
			truncated = truncated || seen >= maxNames
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	slices.Sort(names)
	if len(names) > MaxEntries {
		names, truncated = names[:MaxEntries], true
	}
	return names, truncated, nil
}

func typeOf(mode fs.FileMode) EntryType {
	switch {
	case mode.IsRegular():
		return TypeFile
	case mode.IsDir():
		return TypeDir
	case mode&fs.ModeSymlink != 0:
		return TypeLink
	}
	return TypeOther
}

// join is path.Join without a leading "./".
func join(dir, name string) string { return path.Join(cmp.Or(dir, "."), name) }
