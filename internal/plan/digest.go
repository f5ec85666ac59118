package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Bounds of the folders that an answer is bound to: enough for a workspace with a few
// scripts and their output, which is hashed twice for each call.
const (
	maxReads     = 512 // files, folders and links
	maxReadBytes = 16 << 20
)

// A readBudget is how much more may be read.
type readBudget struct {
	entries int
	bytes   int64
}

// digest returns the digest of everything in a folder, or of a file, or says why
// there is none. Links are hashed as links and not followed: their targets are bound
// separately, or cannot be read.
func (r *readBudget) digest(path string) (digest, why string) {
	h := sha256.New()
	why = r.add(h, path, ".")
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), why
}

// add writes what is at path, under the name name, to h. It returns why it could not,
// or "".
func (r *readBudget) add(h hash.Hash, path, name string) (why string) {
	const unreadable = "cannot be read completely"
	if r.entries--; r.entries < 0 {
		return fmt.Sprintf("holds more than %d files and folders", maxReads)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return unreadable
	}
	var text string
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		text, err = os.Readlink(path)
	case mode.IsRegular():
		var size int64
		text, size, err = digestFile(path, r.bytes)
		if r.bytes -= size; r.bytes < 0 {
			return fmt.Sprintf("holds more than %d MiB", maxReadBytes>>20)
		}
	}
	if err != nil {
		return unreadable
	}
	fmt.Fprintf(h, "%q %v %q\n", name, info.Mode(), text)
	if !info.IsDir() {
		return ""
	}
	entries, err := r.list(path)
	if err != nil {
		return unreadable
	}
	for _, entry := range entries {
		if why := r.add(h, filepath.Join(path, entry), name+"/"+entry); why != "" {
			return why
		}
	}
	return ""
}

// list returns the names in a folder, sorted. From a large folder it returns at most
// one more than the budget allows.
func (r *readBudget) list(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(r.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// digestFile returns the digest of a regular file, and its size. A file of more than
// max bytes is not read; only its size counts. For anything else, the digest is
// empty.
func digestFile(path string, max int64) (digest string, size int64, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", 0, err // opening a pipe or a device could block or have effects
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(h, io.LimitReader(f, max+1))
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), size, err
}
