// Package examples carries the example packs inside the binary, so that
// "packs-mcp try" has something real to show on a machine that has none.
//
// It knows nothing about packs: it holds files and writes them to a folder,
// where they are read like anybody's packs.
package examples

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Packs holds the folder "packs", with one example pack in each of its
// folders. An embedded file has no executable bit; see [Extract].
//
//go:embed all:packs
var Packs embed.FS

// Extract writes every example pack to dst/NAME/…, so that dst becomes a root
// of packs. It makes dst when it is missing, and never writes outside it, even
// when dst holds symbolic links.
//
// Files get mode 0644, or 0755 when they are in a folder called "scripts" or
// begin with "#!". A file that is there already with the same content is kept,
// and gets that mode; one with other content is an error that wraps
// [fs.ErrExist], and nothing of it is changed. Every file appears whole or not
// at all; a failure may leave some of the files behind.
func Extract(dst string) error {
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return fmt.Errorf("extracting the example packs: %w", err)
	}
	root, err := os.OpenRoot(dst)
	if err != nil {
		return fmt.Errorf("extracting the example packs: %w", err)
	}
	err = fs.WalkDir(Packs, "packs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "packs" {
			return err
		}
		rel := filepath.FromSlash(strings.TrimPrefix(name, "packs/"))
		if d.IsDir() {
			return root.MkdirAll(rel, 0o755)
		}
		data, err := Packs.ReadFile(name)
		if err != nil {
			return err
		}
		return place(root, rel, data, modeOf(name, data))
	})
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("extracting the example packs to %q: %w", dst, err)
	}
	return nil
}

// Names returns the names of the example packs, which are their ids.
func Names() ([]string, error) {
	entries, err := Packs.ReadDir("packs")
	if err != nil {
		return nil, fmt.Errorf("listing the example packs: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// Digest identifies these examples: other ones have another digest.
func Digest() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(Packs, "packs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := Packs.ReadFile(name)
		fmt.Fprintf(sum, "%q %d\n%s", name, len(data), data)
		return err
	})
	const enough = 8
	return hex.EncodeToString(sum.Sum(nil)[:enough]), err
}

// modeOf returns the mode of the embedded file name, whose content is data.
func modeOf(name string, data []byte) fs.FileMode {
	if path.Base(path.Dir(name)) == "scripts" || bytes.HasPrefix(data, []byte("#!")) {
		return 0o755
	}
	return 0o644
}

// place creates rel in root, with this content and mode.
func place(root *os.Root, rel string, data []byte, mode fs.FileMode) error {
	info, err := root.Lstat(rel)
	switch {
	case err == nil && info.Mode().IsRegular():
		there, err := root.ReadFile(rel)
		if err != nil {
			return err
		}
		if !bytes.Equal(there, data) {
			return &fs.PathError{Op: "writing", Path: rel, Err: fs.ErrExist}
		}
		return root.Chmod(rel, mode)
	case err == nil:
		return &fs.PathError{Op: "writing", Path: rel, Err: fs.ErrExist}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}

	// Write beside its place and rename, so that nobody reads half a file.
	tmp := rel + ".tmp"
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	// Again, since the umask may have removed bits from the mode above.
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = root.Rename(tmp, rel)
	}
	if err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	return nil
}
