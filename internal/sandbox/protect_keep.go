package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
)

// What is kept of the changed versions of protected things in a workspace.
const (
	maxKeptBytes   = 64 << 20
	maxKeptEntries = 5_000
	maxKeptDepth   = 32
)

// A keeper copies what a run did to protected things into the workspace, as
// plain files that nobody else may read and nobody runs. A symbolic link
// becomes a file that says where it led; what has no content is left out.
type keeper struct {
	root    *os.Root
	dir     string // slash path in root
	made    bool
	refused error // why nothing is kept
	count   int
	room    int64
	entries int
}

func newKeeper(ws *workspace, runID string) *keeper {
	k := &keeper{dir: keptDir + "/" + runID + ".protected", room: maxKeptBytes, entries: maxKeptEntries}
	switch {
	case ws == nil:
		k.refused = errors.New("the run has none")
	case runID == "":
		k.refused = errors.New("the run has no id")
	default:
		k.root = ws.root
	}
	return k
}

// save copies what is at from in root, all of it or nothing, and returns its
// slash path in the workspace.
func (k *keeper) save(root *os.Root, from string) (to string, err error) {
	if err := k.open(); err != nil {
		return "", err
	}
	to = path.Join(k.dir, strconv.Itoa(k.count+1))
	if err := k.copy(root, from, to, 0); err != nil {
		_ = k.root.RemoveAll(to)
		return "", err
	}
	k.count++
	return to, nil
}

// open makes the folder. What the program put there is not used.
func (k *keeper) open() error {
	if k.made || k.refused != nil {
		return k.refused
	}
	_ = k.root.Mkdir(keptDir, 0o700) // that it is there is seen next
	if info, err := k.root.Lstat(keptDir); err != nil || !info.IsDir() {
		k.refused = fmt.Errorf("%s there is not a folder", keptDir)
	} else if err := k.root.Mkdir(k.dir, 0o700); err != nil {
		k.refused = err
	}
	k.made = k.refused == nil
	return k.refused
}

func (k *keeper) copy(root *os.Root, from, to string, depth int) error {
	if k.entries--; k.entries < 0 || depth > maxKeptDepth {
		return errors.New("there is too much of it")
	}
	info, err := root.Lstat(from)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return k.copyFile(root, from, to, info)
	case mode&fs.ModeSymlink != 0:
		target, err := root.Readlink(from)
		if err != nil {
			return err
		}
		return k.write(to, func(w io.Writer) error {
			_, err := io.WriteString(w, target)
			return err
		})
	case mode.IsDir():
		return k.copyFolder(root, from, to, info, depth)
	}
	return nil
}

func (k *keeper) copyFolder(root *os.Root, from, to string, info fs.FileInfo, depth int) error {
	if info.Mode()&0o700 != 0o700 {
		_ = root.Chmod(from, info.Mode()|0o700) // it is to be removed as well
	}
	if err := k.root.Mkdir(to, 0o700); err != nil {
		return err
	}
	f, err := openFolder(root, from)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		list, err := f.ReadDir(256)
		for _, e := range list {
			if err := k.copy(root, path.Join(from, e.Name()), path.Join(to, e.Name()), depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (k *keeper) copyFile(root *os.Root, from, to string, info fs.FileInfo) error {
	if info.Size() > k.room {
		return errors.New("there is too much of it")
	}
	f, err := root.OpenFile(from, os.O_RDONLY|openNonblock, 0)
	if errors.Is(err, fs.ErrPermission) && root.Chmod(from, info.Mode()|0o400) == nil {
		f, err = root.OpenFile(from, os.O_RDONLY|openNonblock, 0)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if here, err := f.Stat(); err != nil || !os.SameFile(here, info) {
		return errors.New("it changed while it was copied")
	}
	return k.write(to, func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(f, k.room+1))
		if k.room -= n; k.room < 0 {
			return errors.New("there is too much of it")
		}
		return err
	})
}

func (k *keeper) write(to string, content func(io.Writer) error) error {
	f, err := k.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(content(f), f.Close())
}
