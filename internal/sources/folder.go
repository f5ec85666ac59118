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

// folder is a folder here. It may change while it is read: what came in counts.
type folder struct {
	root *os.Root
	at   string
}

// OpenFolder opens a folder here.
func OpenFolder(dir string) (Snapshot, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder: %w", err)
	}
	return &folder{root, dir}, nil
}

func (f *folder) Resolved() string { return f.at }

// Pin is empty: only its bytes say which state of a folder this is.
func (f *folder) Pin() string { return "" }

// Signer is nobody: who can write to the folder can write what is in it.
func (f *folder) Signer() (*lock.Signature, error) { return nil, nil }

func (f *folder) Close() error { return f.root.Close() }

func (f *folder) Walk(ctx context.Context, under string, do func(stage.Entry, io.Reader) error) error {
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
		rel, ok := below(p, under)
		if err != nil || !ok || rel == "." {
			return err
		}
		if p == ".git" { // the repository that the folder is
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return f.entry(p, rel, d, do)
	})
}

func (f *folder) entry(p, rel string, d fs.DirEntry, do func(stage.Entry, io.Reader) error) error {
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
		return do(stage.Entry{Path: rel, Kind: stage.Other, Target: special(mode)}, nil)
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
		return do(stage.Entry{Path: rel, Kind: stage.Other, Target: special(info.Mode())}, nil)
	}
	return do(regular(rel, info.Mode()), file)
}

// regular is the entry of a file with this mode.
func regular(rel string, mode fs.FileMode) stage.Entry {
	if mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return stage.Entry{Path: rel, Kind: stage.Other, Target: "a program that runs as somebody else (setuid)"}
	}
	return stage.Entry{Path: rel, Exec: mode&0o111 != 0}
}

// special says what a file is that is none.
func special(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "neither a file nor a folder"
}
