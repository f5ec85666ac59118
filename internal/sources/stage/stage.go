// Package stage takes in files from elsewhere: it puts the entries of an archive, a
// repository's tree or a folder, one by one, into an empty folder, or refuses all of
// them. Every source of packs goes through it, so all rules about what may come in
// are here.
//
// It does not fetch, unpack or verify anything, and does not know what a pack is.
package stage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// Limits say how much comes in. A field that is 0 has its default.
type Limits struct {
	Files int   // files, folders and links; 512
	Bytes int64 // the sizes of all files; 16 MiB
}

func (l Limits) withDefaults() Limits {
	return Limits{Files: cmp.Or(l.Files, 512), Bytes: cmp.Or(l.Bytes, 16<<20)}
}

// A RefusedError says which entry of a source is refused, and why. The rest of the
// source is refused with it.
type RefusedError struct {
	Path   string // as in the source
	Reason error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("refused: %q: %v", e.Path, e.Reason) }

func (e *RefusedError) Unwrap() error { return e.Reason }

// ErrTooLarge is in the error chain of a refusal because of size.
var ErrTooLarge = errors.New("too large")

// A Stage is an empty folder that is being filled. It is for one goroutine.
type Stage struct {
	into   Into
	limits Limits
	names  map[string]string // :: path as some system compares it → the original path
	kinds  map[string]Kind   // :: path → kind of the entry there, including parents
	files  []Stored
	links  []Entry
	bytes  int64
	buffer bytes.Buffer    // the file being read
	made   map[string]bool // :: folder on the disk, or in memory → true
}

// Stored is one file or link that was taken in.
type Stored struct {
	Path   string
	Exec   bool
	Size   int64
	Digest string // lower-case hexadecimal SHA-256 of the bytes; "" for a link
	Target string // of a link
}

// Into says where a stage puts the files: on disk, in memory, or both.
type Into struct {
	Root    *os.Root       // an empty folder; nil: nothing is written
	Memory  *packfs.Memory // an empty one; nil: no bytes are kept
	Durable bool           // sync each file; otherwise a system crash can lose it until the caller makes it durable
}

// New starts to fill a folder.
func New(into Into, limits Limits) *Stage {
	return &Stage{into: into, limits: limits.withDefaults(), names: map[string]string{}, kinds: map[string]Kind{}, made: map[string]bool{".": true}}
}

// Add takes in one entry; r has the bytes of a file. The error is a [*RefusedError],
// the reader's, or the disk's. After an error, the stage cannot be used any more.
func (s *Stage) Add(e Entry, r io.Reader) error {
	as := e.Path
	refuse := func(reason error) error { return &RefusedError{as, reason} }
	if e.Kind == Folder || e.Kind == Other {
		e.Path = strings.TrimSuffix(e.Path, "/")
	}
	if err := checkName(e.Path); err != nil {
		return refuse(err)
	}
	if e.Kind == Folder && s.kinds[e.Path] == Folder && s.names[visible(e.Path)] == e.Path {
		return nil // many archives list a folder after its contents
	}
	if err := s.claim(e.Path, e.Kind); err != nil {
		return refuse(err)
	}
	switch e.Kind {
	case Folder:
		return s.mkdir(e.Path)
	case Link:
		if err := checkTarget(e); err != nil {
			return refuse(err)
		}
		s.links = append(s.links, e)
		return nil
	case File:
		return s.file(e, r)
	}
	return refuse(fmt.Errorf("it is %s", cmp.Or(e.Target, "neither a file nor a folder")))
}

// claim reserves the path, and those of the folders above.
func (s *Stage) claim(name string, kind Kind) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		switch k, ok := s.kinds[dir]; {
		case ok && k != Folder:
			return fmt.Errorf("%q, above it, is not a folder", dir)
		case ok:
			continue
		}
		if err := s.take(dir, Folder); err != nil {
			return err
		}
	}
	return s.take(name, kind)
}

func (s *Stage) take(name string, kind Kind) error {
	key := visible(name)
	if other, ok := s.names[key]; ok {
		if other == name {
			return errors.New("it occurs twice")
		}
		return fmt.Errorf("many systems take its name for that of %q", other)
	}
	if len(s.kinds) >= s.limits.Files {
		return fmt.Errorf("%w: there are more than %d files and folders", ErrTooLarge, s.limits.Files)
	}
	s.names[key], s.kinds[name] = name, kind
	return nil
}

// mkdir makes a folder, and those above it, once.
func (s *Stage) mkdir(dir string) error {
	if s.made[dir] {
		return nil
	}
	if err := s.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	if s.into.Root != nil {
		if err := s.into.Root.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if s.into.Memory != nil {
		s.into.Memory.Folder(dir)
	}
	s.made[dir] = true
	return nil
}

// file takes in a file. It reads all bytes once before writing anything.
func (s *Stage) file(e Entry, r io.Reader) error {
	left := s.limits.Bytes - s.bytes
	data, err := s.read(r, left)
	if err != nil {
		return fmt.Errorf("reading %q: %w", e.Path, err)
	}
	n := int64(len(data))
	if n > maxNested && isArchive(data) {
		return &RefusedError{e.Path, fmt.Errorf("%w: it is an archive of more than %s, and nobody looks at what is in it", ErrTooLarge, size(maxNested))}
	}
	if n > left {
		return &RefusedError{e.Path, fmt.Errorf("%w: with it, the files have more than %s", ErrTooLarge, size(s.limits.Bytes))}
	}
	if err := s.mkdir(path.Dir(e.Path)); err != nil {
		return err
	}
	if s.into.Root != nil {
		if err := s.write(e, data); err != nil {
			return err
		}
	}
	if s.into.Memory != nil {
		s.into.Memory.File(e.Path, e.Exec, data)
	}
	s.bytes += n
	sum := sha256.Sum256(data)
	s.files = append(s.files, Stored{Path: e.Path, Exec: e.Exec, Size: n, Digest: hex.EncodeToString(sum[:])})
	return nil
}

// read reads a file of at most max bytes, and one byte of a larger one. Unless they are
// kept in memory, its bytes are valid until the next call.
func (s *Stage) read(r io.Reader, max int64) ([]byte, error) {
	if in, ok := r.(interface{ Len() int }); ok && s.into.Memory != nil { // as bytes.Reader has
		data := make([]byte, min(int64(in.Len()), max+1))
		_, err := io.ReadFull(r, data)
		return data, err
	}
	s.buffer.Reset()
	_, err := s.buffer.ReadFrom(io.LimitReader(r, max+1))
	if s.into.Memory != nil {
		return bytes.Clone(s.buffer.Bytes()), err
	}
	return s.buffer.Bytes(), err
}

func (s *Stage) write(e Entry, data []byte) error {
	mode := fs.FileMode(0o400)
	if e.Exec {
		mode = 0o500
	}
	f, err := s.into.Root.OpenFile(e.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if s.into.Durable {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

// maxNested is the largest archive that comes in as a file of a pack, in bytes. It is
// never unpacked here, so its contents need no bound, but neither a person nor a scan
// sees them. Office documents, which are also zip files, are smaller.
const maxNested = 4 << 20

// isArchive reports whether a file is an archive, or compressed.
func isArchive(data []byte) bool {
	for _, mark := range []string{"PK\x03\x04", "PK\x05\x06", "\x1f\x8b", "BZh", "\xfd7zXZ\x00", "\x28\xb5\x2f\xfd", "7z\xbc\xaf\x27\x1c", "Rar!\x1a\x07", "!<arch>\n"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return true
		}
	}
	return len(data) >= 262 && string(data[257:262]) == "ustar"
}

func size(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// checkTarget refuses a link that cannot lead to something inside the same stage.
func checkTarget(e Entry) error {
	if e.Target == "" || len(e.Target) > maxPath {
		return fmt.Errorf("it is a link whose target has %d bytes", len(e.Target))
	}
	out := errors.New("it is a link that leads out")
	if path.IsAbs(e.Target) {
		return out
	}
	to := path.Join(path.Dir(e.Path), e.Target)
	if to == ".." || strings.HasPrefix(to, "../") {
		return out
	}
	if to != "." {
		if err := checkName(to); err != nil {
			return fmt.Errorf("it is a link, and where it leads: %w", err)
		}
	}
	return nil
}

// Finish makes the links, after all writes, and returns the tree. A link must lead to
// a file or folder that came in.
func (s *Stage) Finish() (*Tree, error) {
	t := &Tree{Files: s.files, Bytes: s.bytes}
	for _, l := range s.links {
		to := path.Join(path.Dir(l.Path), l.Target)
		if k, ok := s.kinds[to]; !ok && to != "." || k == Link {
			return nil, &RefusedError{l.Path, errors.New("it is a link that leads to nothing that came with it")}
		}
		if err := s.passesLinks(l); err != nil {
			return nil, err
		}
		if err := s.mkdir(path.Dir(l.Path)); err != nil {
			return nil, err
		}
		if s.into.Root != nil {
			if err := s.into.Root.Symlink(l.Target, l.Path); err != nil {
				return nil, fmt.Errorf("making the link %q: %w", l.Path, err)
			}
		}
		if s.into.Memory != nil {
			s.into.Memory.Link(l.Path, l.Target)
		}
		t.Files = append(t.Files, Stored{Path: l.Path, Target: l.Target})
	}
	slices.SortFunc(t.Files, func(a, b Stored) int { return cmp.Compare(a.Path, b.Path) })
	return t, nil
}

// passesLinks refuses a link whose path goes through another link: its text and the
// place where the system ends up could differ.
func (s *Stage) passesLinks(l Entry) error {
	at := path.Dir(l.Path)
	for part := range strings.SplitSeq(l.Target, "/") {
		at = path.Join(at, part)
		if s.kinds[at] == Link {
			return &RefusedError{l.Path, fmt.Errorf("it is a link that leads over another link, %q", at)}
		}
	}
	return nil
}
