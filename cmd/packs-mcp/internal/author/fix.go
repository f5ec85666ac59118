package author

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/lint"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// fixing says what --fix does.
type fixing struct {
	on     bool
	dryRun bool // only say what would change
}

// A cure is one mechanical change to a file. It returns what it changed, in words.
type cure func(f *place, dryRun bool) (done string, err error)

// cures returns the changes, by the code of the problem that they fix.
func cures() map[string]cure {
	return map[string]cure{
		frontmatter.CodeNameMissing: addName,
		lint.CodeProgramMode:        makeExecutable,
		lint.CodeProgramLineEnds:    unixLineEnds,
	}
}

// fix fixes the problems in a report that have a mechanical fix, and reports whether
// it changed anything. Other problems stay in the report.
func (a *app) fix(report lint.Report, how fixing) (changed bool) {
	all := cures()
	for _, r := range report.Packs {
		for _, d := range r.Problems {
			mend := all[d.Code]
			if mend == nil {
				continue
			}
			f, err := placeOf(r.Path, d.File)
			done := ""
			if err == nil {
				done, err = mend(f, how.dryRun)
				err = errors.Join(err, f.root.Close())
			}
			switch {
			case err != nil:
				fmt.Fprintf(a.Stderr, "not fixed: %s: %s\n", safetext.Line(d.File), safetext.Line(err.Error()))
			case how.dryRun:
				fmt.Fprintf(a.Stderr, "would fix: %s: %s\n", safetext.Line(d.File), done)
			default:
				fmt.Fprintf(a.Stderr, "fixed: %s: %s\n", safetext.Line(d.File), done)
				changed = true
			}
		}
	}
	return changed
}

// addName writes the folder's name into a document that lacks a name.
func addName(f *place, dryRun bool) (done string, err error) {
	name := packname.Nearest(filepath.Base(filepath.Dir(filepath.Join(f.folder, f.name))))
	err = f.rewrite(dryRun, func(src []byte) ([]byte, error) {
		text, ok := lint.AddName(src, name)
		if !ok {
			return nil, errors.New("it is not clear what to write, or where; add a line name: to the frontmatter")
		}
		return text, nil
	})
	return "name: " + name, err
}

// unixLineEnds removes the carriage returns from the line ends of a script.
func unixLineEnds(f *place, dryRun bool) (done string, err error) {
	return "Unix line ends", f.rewrite(dryRun, func(src []byte) ([]byte, error) {
		text, ok := lint.UnixLineEnds(src)
		if !ok {
			return nil, errors.New("it is not a script with other line ends")
		}
		return text, nil
	})
}

// makeExecutable lets everybody who may read a file execute it.
func makeExecutable(at *place, dryRun bool) (done string, err error) {
	// Refuse hard links: another name of the file may be outside of the pack.
	dir, err := packfs.Open(at.folder, packfs.RefuseHardLinks)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f, err := dir.OpenFile(filepath.ToSlash(at.name))
	if err != nil {
		return "", cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	mode := info.Mode().Perm()
	mode |= mode & 0o444 >> 2
	if !dryRun {
		err = f.Chmod(mode)
	}
	return fmt.Sprintf("mode %04o", mode), err
}

// maxFixed is the largest file that is rewritten, in bytes.
const maxFixed = 8 << 20

// rewrite replaces the file as a whole with the result of change. The file keeps its
// permissions.
func (f *place) rewrite(dryRun bool, change func(src []byte) ([]byte, error)) error {
	info, err := f.root.Lstat(f.name)
	if err != nil {
		return err
	}
	if info.Size() > maxFixed {
		return fmt.Errorf("it has more than %d bytes", maxFixed)
	}
	src, err := f.root.ReadFile(f.name)
	if err != nil {
		return err
	}
	text, err := change(src)
	if err != nil || dryRun {
		return err
	}
	temp := filepath.Join(filepath.Dir(f.name), ".packs-mcp-"+rand.Text())
	w, err := f.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Chmod(info.Mode().Perm()), w.Sync(), w.Close()); err == nil {
		err = f.root.Rename(temp, f.name)
	}
	if err != nil {
		return errors.Join(err, f.root.Remove(temp))
	}
	return nil
}

// A place is a plain file of a pack. It is reached through a handle on the pack's
// folder, so that no link can lead out of the folder, not even one that is created
// meanwhile.
type place struct {
	root   *os.Root
	folder string // absolute
	name   string // in folder
}

// placeOf returns the place of a file in a pack. path is the pack's folder, or a file
// in it. The caller closes its root.
func placeOf(path, file string) (*place, error) {
	folder, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		folder = filepath.Dir(folder)
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(folder, whole)
	if err != nil || !filepath.IsLocal(name) {
		return nil, errors.New("it is not in the folder of its pack")
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is a link, or no plain file; fix the file that it leads to")
	}
	if err != nil {
		return nil, errors.Join(cause(err), root.Close())
	}
	return &place{root: root, folder: folder, name: name}, nil
}

// cause returns err without the path, which the message already has.
func cause(err error) error {
	if e, ok := errors.AsType[*packfs.PathError](err); ok {
		return e.Reason
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
