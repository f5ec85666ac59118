package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// UnsafeError says why a file cannot be trusted with the log, and what to do.
type UnsafeError struct {
	Path   string
	Reason string // "is a symbolic link"
	Hint   string // what to do, in words
}

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("audit log %q %s: %s", e.Path, e.Reason, e.Hint)
}

// quote makes path a word for a shell.
func quote(path string) string {
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// checkSafe returns an [UnsafeError] unless fi describes a regular file that
// only the user can access. fi is of path itself, not of a link's target.
func checkSafe(path string, fi fs.FileInfo) error {
	switch mode := fi.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return &UnsafeError{path, "is a symbolic link", "name the file it points to"}
	case mode.IsDir():
		return &UnsafeError{path, "is a folder", "name a file in it"}
	case !mode.IsRegular():
		return &UnsafeError{path, "is not a regular file", "choose another path"}
	}
	if reason, hint := checkAccess(path, fi); reason != "" {
		return &UnsafeError{path, reason, hint}
	}
	return nil
}

// openSafe opens a file of the log, and checks what it opened.
func openSafe(path string, flag int) (*os.File, error) {
	// Check before opening, for a better message, and again after, because only
	// an open file cannot be swapped.
	if fi, err := os.Lstat(path); err == nil {
		if err := checkSafe(path, fi); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, flag|openFlags, 0o600)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil {
		err = checkSafe(path, fi)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// A link is a place in the chain: the number and hash of one entry.
type link struct {
	seq  int64
	hash string
	prev string // of the entry; empty in a head
}

// headSize is the size of a head file: 20 digits, a space, the hash, a line feed.
const headSize = 20 + 1 + sha256.Size*2 + 1

func headPath(path string) string { return path + ".head" }
func lockPath(path string) string { return path + ".lock" }

// readHead returns the head of the log at path. The error is fs.ErrNotExist when
// there is no head file; any other error means that the head cannot be trusted.
func readHead(path string) (link, error) {
	f, err := openSafe(headPath(path), os.O_RDONLY)
	if err != nil {
		return link{}, err
	}
	defer f.Close()
	buf, err := io.ReadAll(io.LimitReader(f, headSize+1))
	if err != nil {
		return link{}, err
	}
	text := string(buf)
	digits, hash, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || headText(link{seq: seq, hash: hash}) != text || seq < 0 || seq > maxSeq || !isHash(hash) {
		return link{}, fmt.Errorf("audit log head %q is damaged", headPath(path))
	}
	return link{seq: seq, hash: hash}, nil
}

// A head is the head file of a log that is written to. It stays open: opening it for
// each entry takes longer than writing to it.
type head struct {
	path string
	file *os.File    // nil until the first write, and after Close
	info os.FileInfo // of file
}

// write replaces the content of the head file. It is one small write in place: a
// reader under the lock sees the old head or the new one.
func (h *head) write(at link) error {
	fi, err := os.Lstat(h.path)
	if err == nil {
		err = checkSafe(h.path, fi)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || h.file == nil || !os.SameFile(fi, h.info) {
		if err := h.reopen(); err != nil {
			return err
		}
		fi = h.info
	}
	if _, err := h.file.WriteAt([]byte(headText(at)), 0); err != nil {
		return err
	}
	if fi.Size() > headSize {
		return h.file.Truncate(headSize)
	}
	return nil
}

// reopen opens the file that is at the path now, and makes it when there is none.
func (h *head) reopen() error {
	if err := h.close(); err != nil {
		return err
	}
	f, err := openSafe(h.path, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	h.file, h.info = f, fi
	return nil
}

func (h *head) close() error {
	if h.file == nil {
		return nil
	}
	f := h.file
	h.file = nil
	return f.Close()
}

func headText(at link) string { return fmt.Sprintf("%020d %s\n", at.seq, at.hash) }

func isHash(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && strings.ToLower(s) == s
}

// rotatedName returns the new name of the log at path, whose first entry has the
// number seq.
func rotatedName(path string, seq int64) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-%012d%s", strings.TrimSuffix(path, ext), seq, ext)
}

// rotated returns the renamed files of the log at path, oldest first.
func rotated(path string) ([]string, error) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(base)
	prefix := strings.TrimSuffix(base, ext) + "-"
	found := map[string]int64{} // :: path → number of the first entry
	for _, e := range entries {
		digits, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), ext), prefix)
		if !ok {
			continue
		}
		seq, err := strconv.ParseInt(digits, 10, 64)
		if name := dir + e.Name(); err == nil && rotatedName(path, seq) == name {
			found[name] = seq
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return int(found[a] - found[b]) })
	return names, nil
}
