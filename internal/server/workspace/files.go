package workspace

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// Bounds of a workspace's listing.
const (
	maxFiles = 500
	maxDepth = 8
	maxKinds = 50 // the newest files, which are read to find out their kind
)

// A File is a regular file in one of a chat's workspaces.
type File struct {
	Path     string // with slashes, below the workspace; prefixed with its handle, if it is not the first
	Size     int64  // bytes
	MIME     string // empty if it was not determined
	Modified time.Time
}

// Files returns the regular files of the workspace, newest first, up to the bound. It
// is empty if the workspace cannot be opened.
func (w *Workspace) Files(ctx context.Context) []File {
	dir, err := w.Open()
	if err != nil {
		return nil
	}
	defer dir.Close()
	var all []File
	var walk func(name string, depth int)
	walk = func(name string, depth int) {
		entries, _, err := dir.List(name)
		if err != nil || depth > maxDepth || ctx.Err() != nil {
			return
		}
		for _, e := range entries {
			at := path.Join(name, e.Name)
			switch {
			case len(all) >= maxFiles:
				return
			case e.Type == packfs.TypeDir:
				walk(at, depth+1)
			case e.Type == packfs.TypeFile:
				if f, err := describe(dir, at, false); err == nil {
					all = append(all, f)
				}
			}
		}
	}
	walk(".", 0)
	slices.SortFunc(all, func(a, b File) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Path, b.Path))
	})
	for i := range all[:min(len(all), maxKinds)] {
		if f, err := describe(dir, all[i].Path, true); err == nil {
			all[i] = f
		}
	}
	return all
}

// Files returns the files of all workspaces, those of the first workspace first.
func (s *Set) Files(ctx context.Context) []File {
	var all []File
	for _, w := range s.All() {
		for _, f := range w.Files(ctx) {
			if len(all) >= maxFiles {
				return all
			}
			if w != s.first {
				f.Path = path.Join(w.Handle, f.Path)
			}
			all = append(all, f)
		}
	}
	return all
}

// describe returns a file's data. It only determines the kind on request, since that
// requires reading the file.
func describe(dir *packfs.Dir, name string, kind bool) (File, error) {
	f, err := dir.OpenFile(name)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	file := File{Path: name, Size: info.Size(), Modified: info.ModTime()}
	if !kind {
		return file, nil
	}
	page, err := dir.Read(name, 0, 1, packfs.Limits{File: 1 << 62})
	if err == nil {
		file.MIME = page.MIME
	}
	return file, err
}

// OpenFile opens a regular file by the path of a [File].
func (s *Set) OpenFile(name string) (io.ReadSeekCloser, File, error) {
	w := s.first
	for _, other := range s.All()[1:] {
		if rest, ok := strings.CutPrefix(name, other.Handle+"/"); ok {
			w, name = other, rest
			break
		}
	}
	dir, err := w.Open()
	if err != nil {
		return nil, File{}, err
	}
	defer dir.Close()
	clean, err := packfs.Clean(name)
	if err != nil || clean == "" {
		return nil, File{}, fs.ErrNotExist
	}
	about, err := describe(dir, clean, true)
	if err != nil {
		return nil, File{}, err
	}
	f, err := dir.OpenFile(clean)
	if err != nil {
		return nil, File{}, err
	}
	return f, about, nil
}
