package packs

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// An Index is a folder of files, one for each root, in which a [Library] keeps
// what it read, so that the next start reads only what changed since. The zero
// value keeps nothing.
//
// What is kept of a directory is which entries it had, and of a document what
// its frontmatter said. Each counts only as long as the directory, or the file,
// has the same device, inode, size, time of modification and time of the
// inode's last change, on a file system of this machine (see [packfs.Local]),
// and had last changed two seconds or more before it was read. Everything else
// is found out anew at each start: ids, what is attached, trust, links, and
// whatever a person approves, which is digested. So a stale index can at worst
// show an old description. It is never asked about anything that has to be safe.
//
// The folder and its files are the user's alone: where others may write, nothing
// is read and nothing is written. A file is replaced whole, so that a killed
// program leaves the one before; a file that is damaged, as a power failure may
// leave it, of another version or of another root counts as none; and when one
// cannot be written, the next start reads everything. Several programs may use one
// Index at once: whatever one of them wrote is right for all.
type Index struct {
	Dir string // made when it is not there
	// Version names the program, to the build: frontmatter is read as it reads it.
	Version string
}

const (
	indexMagic = "packs-mcp index 4\n"
	maxIndex   = 256 << 20 // bytes of one file
	// indexLife is how long an index of a root that is never scanned is left.
	indexLife = 30 * 24 * time.Hour
)

// errIndex says that bytes are not an index, or not the one that was asked for.
var errIndex = errors.New("it is not an index of this root by this program")

// file returns the file of a root.
func (x Index) file(dir string) private.File {
	sum := sha256.Sum256([]byte(dir))
	return private.File{
		Path: filepath.Join(x.Dir, "packs-"+hex.EncodeToString(sum[:8])+".index"), What: "the index of packs", Max: maxIndex,
		Guarded: true, // who can put another in its place says what packs are described as
		Remade:  true, // it has a checksum, and edits wait while it is written
	}
}

// key is what an index is good for.
func (x Index) key(root string, l Limits) string {
	return fmt.Sprintf("%q %q %d %d %d", x.Version, root, l.EntryDoc, l.Frontmatter, l.ToolsFile)
}

// load returns what is kept of a root; nil, and why, when it is nothing.
func (x Index) load(dir string, l Limits) (*memo, error) {
	file := x.file(dir)
	f, info, err := file.Open() // nobody else can have written it
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxIndex {
		return nil, errIndex
	}
	m, err := decodeIndex(f, info.Size(), x.key(dir, l), dir)
	if err != nil && !errors.Is(err, errIndex) {
		err = fmt.Errorf("reading the index of packs: %w", err)
	}
	if now := time.Now(); err == nil && now.Sub(info.ModTime()) > indexLife/30 {
		_ = os.Chtimes(file.Path, now, now) // it is used: see sweep
	}
	return m, err
}

// save replaces what is kept of a root, unless another does so just now: done is
// false then, as it is after an error.
func (x Index) save(m *memo, l Limits) (done bool, err error) {
	file := x.file(m.dir)
	done, err = file.TryLock(func() error {
		data := encodeIndex(m, x.key(m.dir, l))
		if len(data) > maxIndex {
			return fmt.Errorf("writing the index of packs: it would have %d bytes, and the limit is %d", len(data), maxIndex)
		}
		return file.Write(data)
	})
	return done && err == nil, err
}

// sweep removes what is kept of roots that nobody scanned for a long time, and
// what killed programs left half-written as long ago.
func (x Index) sweep(now time.Time) {
	files, err := os.ReadDir(x.Dir) // and not by a pattern, which the user's path may be
	if err != nil {
		return
	}
	for _, f := range files {
		name := f.Name()
		if of, ok := private.Unfinished(name); ok {
			name = of
		}
		if ours, err := filepath.Match("packs-*.index*", name); err != nil || !ours {
			continue
		}
		if info, err := f.Info(); err == nil && now.Sub(info.ModTime()) > indexLife {
			os.Remove(filepath.Join(x.Dir, f.Name())) // at worst, it is made again
		}
	}
}

// An index is a head, which says what it is of and how long its three parts are;
// the names of links, the tree of the memo as it is in memory, and the texts of
// documents. Behind the magic is the checksum of what is behind it.
const (
	indexSum  = len(indexMagic)
	indexHead = indexSum + 4*4
)

func encodeIndex(m *memo, key string) []byte {
	size := indexHead + len(key) + len(m.tree)
	for _, d := range m.docs {
		size += len(d.Text()) + 3 // that long a number is before nearly each
	}
	out := writer{b: make([]byte, indexHead, size)}
	copy(out.b, indexMagic)
	part, begin := 0, indexHead
	ends := func() {
		binary.LittleEndian.PutUint32(out.b[indexSum+4+4*part:], uint32(len(out.b)-begin))
		part, begin = part+1, len(out.b)
	}
	out.text(key)
	out.number(uint64(len(m.docs)))
	out.number(uint64(len(m.links)))
	for rel, at := range m.links {
		out.text(rel)
		out.number(uint64(at))
	}
	ends()
	out.b = append(out.b, m.tree...)
	ends()
	for _, d := range m.docs {
		out.text(d.Text())
	}
	ends()
	sign(out.b)
	return out.b
}

// sign writes the checksum.
func sign(index []byte) {
	binary.LittleEndian.PutUint32(index[indexSum:], crc32.ChecksumIEEE(index[indexSum+4:]))
}

// decodeIndex reads an index of size bytes. Nothing that it is given makes it
// panic, or take more memory than some times the bytes there are.
func decodeIndex(from io.Reader, size int64, key, dir string) (*memo, error) {
	if size < int64(indexHead) {
		return nil, errIndex
	}
	in := input{from: from}
	head := packed.From(in.text(indexHead))
	if head.Bytes(len(indexMagic)) != indexMagic {
		return nil, cmp.Or(in.err, errIndex)
	}
	sum := uint32(head.Fixed(4))
	in.sum = crc32.ChecksumIEEE([]byte(head.Rest()))
	lengths := [3]int64{int64(head.Fixed(4)), int64(head.Fixed(4)), int64(head.Fixed(4))}
	if int64(indexHead)+lengths[0]+lengths[1]+lengths[2] != size {
		return nil, errIndex
	}
	about := packed.From(in.text(int(lengths[0])))
	// What a catalog keeps of the texts are parts of one, which so is all that
	// stays of the file beside the tree.
	m := &memo{dir: dir, tree: in.text(int(lengths[1]))}
	texts := packed.From(in.text(int(lengths[2])))
	if in.err != nil || in.sum != sum || about.Text() != key {
		return nil, cmp.Or(in.err, errIndex)
	}
	if n := about.Number(); n <= uint64(len(texts.Rest())) { // each has one byte at least
		m.docs = make([]frontmatter.Summary, n)
	} else {
		about.Fail()
	}
	m.links = make(map[string]int)
	for range about.Count() {
		rel := strings.Clone(about.Text())
		m.links[rel] = int(about.Number())
	}
	for i := range m.docs {
		d, err := frontmatter.SummaryOf(texts.Text())
		if err != nil {
			return nil, errIndex
		}
		m.docs[i] = d
	}
	if !about.IsDone() || !texts.IsDone() || !m.isWhole() {
		return nil, errIndex
	}
	return m, nil
}

// input reads an index in pieces, and adds them to its checksum.
type input struct {
	from io.Reader
	sum  uint32
	err  error
}

// text returns the next n bytes, of which there are enough.
func (in *input) text(n int) string {
	var b strings.Builder
	b.Grow(n)
	if in.err == nil {
		_, in.err = io.CopyN(io.MultiWriter(&b, in), in.from, int64(n))
	}
	return b.String()
}

func (in *input) Write(p []byte) (int, error) {
	in.sum = crc32.Update(in.sum, crc32.IEEETable, p)
	return len(p), nil
}
