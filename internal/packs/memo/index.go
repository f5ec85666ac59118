package memo

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// An Index is a folder with one file for each root, in which a library of packs keeps
// what it read, so that the next start reads only what changed since, and one for queries. The zero value keeps
// nothing.
//
// It keeps the entries of each directory and the frontmatter of each document. A
// record counts only if the directory or file still has the same device, inode, size,
// mtime and ctime, is on a local file system (see [packfs.Local]), and was last changed
// two seconds or more before it was read. Each start determines everything else again:
// ids, what is attached, trust, links, and digests for approvals. So a stale index can
// at worst show an old description. No security decision depends on it.
//
// Only the user may write to the folder and its files; otherwise they are neither read
// nor written. A file is replaced as a whole, so a killed program leaves the old one. A
// file that is damaged (as after a power failure), or belongs to another version or
// root, is ignored. If a file cannot be written, the next start reads everything.
// Several programs can use one Index at once: what one of them wrote is right for all.
type Index struct {
	Dir string // created if missing
	// Version identifies the build of the program, since another build may read
	// frontmatter differently.
	Version string
}

const (
	indexMagic = "packs-mcp index 4\n"
	maxIndex   = 256 << 20 // bytes of one file
	// indexLife is how long the index of a root that is no longer scanned is kept.
	indexLife = 30 * 24 * time.Hour
)

// errIndex says that a file is not an index, or not the requested one.
var errIndex = errors.New("it is not an index of this root by this program")

// file returns the file of a root.
func (x Index) file(dir string) private.File {
	sum := sha256.Sum256([]byte(dir))
	return private.File{
		Path: filepath.Join(x.Dir, "packs-"+hex.EncodeToString(sum[:8])+".index"), What: "the index of packs", Max: maxIndex,
		Guarded: true, // anybody who can replace it controls the descriptions of packs
		Remade:  true, // no fsync: it has a checksum, and edits wait while it is written
	}
}

// key identifies what an index is valid for.
func (x Index) key(root, settings string) string {
	return fmt.Sprintf("%q %q %s", x.Version, root, settings)
}

// Load returns the memo of a root, or an error. settings are those that Save was called
// with: anything that decides what is read of the same files.
func (x Index) Load(dir, settings string) (*Memo, error) {
	file := x.file(dir)
	f, info, err := file.Open() // fails if another user could have written it
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxIndex {
		return nil, errIndex
	}
	m, err := decodeIndex(f, info.Size(), x.key(dir, settings), dir)
	if err != nil && !errors.Is(err, errIndex) {
		err = fmt.Errorf("reading the index of packs: %w", err)
	}
	if err == nil {
		markUsed(file, info)
	}
	return m, err
}

// markUsed keeps a file from Sweep.
func markUsed(file private.File, info fs.FileInfo) {
	if now := time.Now(); now.Sub(info.ModTime()) > indexLife/30 {
		_ = os.Chtimes(file.Path, now, now)
	}
}

// Save replaces the index of a root, unless another process is writing it just now.
// Then, and after an error, done is false.
func (x Index) Save(m *Memo, settings string) (done bool, err error) {
	file := x.file(m.Dir)
	done, err = file.TryLock(func() error {
		data := encodeIndex(m, x.key(m.Dir, settings))
		if len(data) > maxIndex {
			return fmt.Errorf("writing the index of packs: it would have %d bytes; the limit is %d", len(data), maxIndex)
		}
		return file.Write(data)
	})
	return done && err == nil, err
}

// Sweep removes the files of roots that were not scanned for indexLife, and unfinished
// files of killed programs that are as old.
func (x Index) Sweep(now time.Time) {
	files, err := os.ReadDir(x.Dir) // not filepath.Glob: the user's path may hold pattern characters
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
			os.Remove(filepath.Join(x.Dir, f.Name())) // at worst, it is written again
		}
	}
}

// An index begins with a head: the magic, a checksum of everything after it, and the
// lengths of the three parts. The parts are the key and the links, the memo's tree as it
// is in memory, and the texts of documents.
const (
	indexSum  = len(indexMagic)
	indexHead = indexSum + 4*4
)

func encodeIndex(m *Memo, key string) []byte {
	size := indexHead + len(key) + len(m.tree)
	for _, d := range m.docs {
		size += len(d.Text()) + 3 // the length before nearly every text fits in 3 bytes
	}
	out := Writer{b: make([]byte, indexHead, size)}
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

// decodeIndex reads an index of size bytes. No input makes it panic, or use more
// memory than a small multiple of size.
func decodeIndex(from io.Reader, size int64, key, dir string) (*Memo, error) {
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
	// The catalog's texts are parts of one string. So that string and the tree are
	// all that stays of the file in memory.
	m := &Memo{Dir: dir, tree: in.text(int(lengths[1]))}
	texts := packed.From(in.text(int(lengths[2])))
	if in.err != nil || in.sum != sum || about.Text() != key {
		return nil, cmp.Or(in.err, errIndex)
	}
	if n := about.Number(); n <= uint64(len(texts.Rest())) { // each text has at least one byte
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

// input reads an index in pieces and adds them to the checksum.
type input struct {
	from io.Reader
	sum  uint32
	err  error
}

// text returns the next n bytes. The caller checked that there are enough.
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
