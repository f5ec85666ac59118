package packfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// A Denied is an entry of a Tree whose content the digest does not cover. Its content is
// never returned and never copied. A denied directory denies everything below it.
type Denied struct {
	Path   string // with slashes; it may hold any byte but NUL
	Reason error  // of a [PathError]
	line   string // its line in the digest; "" for FIFOs, sockets and devices
}

func (d Denied) Error() string { return (&PathError{d.Path, d.Reason}).Error() }

// deniedMark is the second field of a denied entry's line. In a file's line that field is
// "0" or "1", and in a link's it is "link".
const deniedMark = "denied"

// Kinds of denied entries, as in their lines.
const (
	deniedName   = "name"
	deniedLink   = "link"
	deniedSize   = "size"
	deniedAccess = "access"
)

// deny records an entry that cannot be read. Its line contains what the system says
// without reading it, so that the tree changes when the entry becomes readable or is
// written to. info is nil if the system says nothing.
func (w *treeWalk) deny(at, kind string, why error, info fs.FileInfo) {
	var size, modified int64
	if info != nil {
		size, modified = info.Size(), info.ModTime().UnixNano()
	}
	line := fmt.Sprintf("%s\x00%s\x00%s\x00%d\x00%d\n", at, deniedMark, kind, size, modified)
	w.lines = append(w.lines, line)
	w.tree.Denied = append(w.tree.Denied, Denied{at, why, line})
}

// denies denies an entry if err is about that entry, and reports whether it did. Errors
// that say nothing about it, such as a process without free descriptors or a file that is
// changing, do not deny it.
func (w *treeWalk) denies(at string, err error, info fs.FileInfo) bool {
	if w.strict || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EIO) {
		return false
	}
	w.deny(at, deniedAccess, reason(err), info)
	return true
}

// isOdd reports whether a name cannot be shown or sent unchanged.
func isOdd(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl)
}

// IsPartial reports whether the tree has entries that a program could read but that the
// digest does not cover.
func (t *Tree) IsPartial() bool { return len(t.Denied) > 0 }

// Denies returns why the file or directory at a clean path is denied; nil if it is not. It
// follows the digested symlinks.
func (t *Tree) Denies(name string) error {
	at, ok := t.follow(name)
	if !ok {
		return nil
	}
	for ; at != "."; at = path.Dir(at) {
		i, found := slices.BinarySearchFunc(t.Denied, at, func(d Denied, at string) int { return cmp.Compare(d.Path, at) })
		if found {
			return &PathError{name, t.Denied[i].Reason}
		}
	}
	return nil
}

// DeniedText describes the denied entries for [Dir.DigestCopy]. It is empty if there are
// none.
func (t *Tree) DeniedText() []byte {
	var out []byte
	for _, d := range t.Denied {
		if d.line != "" {
			out = append(strconv.AppendQuote(out, d.line), '\n')
		}
	}
	return out
}

// deniedLines is the reverse of [Tree.DeniedText]. It fails for anything else, above all
// for the line of a file, which must exist in the copy.
func deniedLines(text []byte) (lines []string, err error) {
	for quoted := range strings.Lines(string(text)) {
		line, err := strconv.Unquote(strings.TrimSuffix(quoted, "\n"))
		if err != nil {
			return nil, fmt.Errorf("reading the list of denied files: %w", err)
		}
		if fields := strings.Split(line, "\x00"); len(fields) != 5 || fields[1] != deniedMark {
			return nil, errors.New("reading the list of denied files: it names a file that is not denied")
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// readable checks that a file can be opened, for a walk that reads nothing.
func readable(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
