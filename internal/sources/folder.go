package sources

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// A Folder is a folder on this machine. It may change while it is read: the bytes
// that were read count.
type Folder struct {
	root *os.Root
	at   string
}

// OpenFolder opens a folder on this machine.
func OpenFolder(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder: %w", err)
	}
	return &Folder{root, dir}, nil
}

// Resolved returns the path of the folder.
func (f *Folder) Resolved() string { return f.at }

// Pin returns "": only its bytes identify a folder's state.
func (f *Folder) Pin() string { return "" }

// Signer returns nil: anyone who can write to the folder could forge a signature's
// source.
func (f *Folder) Signer() (*lock.Signature, error) { return nil, nil }

func (f *Folder) Close() error { return f.root.Close() }

func (f *Folder) Walk(ctx context.Context, under string, do func(stage.Entry, io.Reader) error) error {
	from := under
	if from == "" {
		from = "."
	}
	if info, err := f.root.Lstat(from); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %q in %q", under, f.at)
	}
	return fs.WalkDir(f.root.FS(), from, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		rel, ok := Below(p, under)
		if err != nil || !ok || rel == "." {
			return err
		}
		if p == ".git" { // the folder's own repository
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return f.entry(p, rel, d, do)
	})
}

func (f *Folder) entry(p, rel string, d fs.DirEntry, do func(stage.Entry, io.Reader) error) error {
	switch mode := d.Type(); {
	case mode.IsDir():
		return do(stage.Entry{Path: rel, Kind: stage.Folder}, nil)
	case mode&fs.ModeSymlink != 0:
		target, err := f.root.Readlink(p)
		if err != nil {
			return err
		}
		return do(stage.Entry{Path: rel, Kind: stage.Link, Target: target}, nil)
	case !mode.IsRegular():
		return do(stage.Entry{Path: rel, Kind: stage.Other, Target: stage.Special(mode)}, nil)
	}
	file, err := f.root.OpenFile(p, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return do(stage.Entry{Path: rel, Kind: stage.Other, Target: stage.Special(info.Mode())}, nil)
	}
	return do(stage.FileEntry(rel, info.Mode()), file)
}
