package gitdata

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" // what most repositories name objects by
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"
)

// A View reads the files below a folder. Paths have slashes. It follows no links.
// Errors for missing files match [fs.ErrNotExist].
type View interface {
	// Open opens a regular file.
	Open(path string) (*os.File, error)
	// Names returns the names in a folder with their types, sorted.
	Names(path string) ([]Entry, error)
}

// An Entry is a name in a folder.
type Entry struct {
	Name string
	Type fs.FileMode // type bits
}

// Bounds for reading. A repository that exceeds them is not understood, and nothing
// is imported.
const (
	maxObject    = 128 << 20
	maxObjects   = 100_000
	maxImported  = 512 << 20 // bytes of all new objects
	maxDelta     = 200       // length of a chain of deltas; git makes 50, or 250 with --aggressive
	maxRefs      = 100_000
	maxRefFile   = 64 << 20 // of packed-refs and of an index
	maxTreeDepth = 256
)

var errMissing = errors.New("the object is not there")

// objects reads the objects of one repository.
type objects struct {
	view View
	dir  string // of the objects
	size int    // bytes of an id
	open []*pack
}

type pack struct {
	idx, data *os.File
	count     int
	size      int64 // of data
}

// openObjects opens the packs. close must follow.
func openObjects(view View, dir string, size int) (*objects, error) {
	o := &objects{view: view, dir: dir, size: size}
	names, err := view.Names(path.Join(dir, "pack"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range names {
		base, ok := strings.CutSuffix(e.Name, ".idx")
		if !ok || e.Type != 0 {
			continue
		}
		p, err := openPack(view, path.Join(dir, "pack", base), size)
		if err != nil {
			o.close()
			return nil, fmt.Errorf("pack %q: %w", base, err)
		}
		o.open = append(o.open, p)
	}
	return o, nil
}

func (o *objects) close() {
	for _, p := range o.open {
		p.close()
	}
}

func (p *pack) close() {
	_ = p.idx.Close()
	_ = p.data.Close()
}

const idxHeader = 8 + 256*4

func openPack(view View, base string, size int) (*pack, error) {
	idx, err := view.Open(base + ".idx")
	if err != nil {
		return nil, err
	}
	data, err := view.Open(base + ".pack")
	if err != nil {
		_ = idx.Close()
		return nil, err
	}
	p := &pack{idx: idx, data: data}
	head := make([]byte, idxHeader)
	_, err = idx.ReadAt(head, 0)
	if err == nil && (!bytes.HasPrefix(head, []byte("\xfftOc")) || binary.BigEndian.Uint32(head[4:]) != 2) {
		err = errors.New("its index is of another version")
	}
	if err == nil {
		p.count = int(binary.BigEndian.Uint32(head[idxHeader-4:]))
		var info fs.FileInfo
		if info, err = idx.Stat(); err == nil && info.Size() < idxHeader+int64(p.count)*int64(size+8) {
			err = errors.New("its index is cut off")
		}
	}
	if err == nil {
		var info fs.FileInfo
		info, err = data.Stat()
		if err == nil {
			p.size = info.Size()
		}
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// find returns where the object begins in the pack.
func (p *pack) find(id []byte) (at int64, ok bool) {
	var err error
	name := make([]byte, len(id))
	i := sort.Search(p.count, func(i int) bool {
		if err != nil {
			return true
		}
		_, err = p.idx.ReadAt(name, idxHeader+int64(i)*int64(len(id)))
		return bytes.Compare(name, id) >= 0
	})
	if err != nil || i >= p.count {
		return 0, false
	}
	if _, err := p.idx.ReadAt(name, idxHeader+int64(i)*int64(len(id))); err != nil || !bytes.Equal(name, id) {
		return 0, false
	}
	offsets := idxHeader + int64(p.count)*int64(len(id)+4)
	var b [8]byte
	if _, err := p.idx.ReadAt(b[:4], offsets+int64(i)*4); err != nil {
		return 0, false
	}
	n := binary.BigEndian.Uint32(b[:4])
	if n&(1<<31) == 0 {
		return int64(n), true
	}
	if _, err := p.idx.ReadAt(b[:], offsets+int64(p.count)*4+int64(n&^(1<<31))*8); err != nil {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b[:]) &^ (1 << 63)), true
}

func (o *objects) loose(id string) string { return path.Join(o.dir, id[:2], id[2:]) }

// has reports whether the object exists. It does not read it.
func (o *objects) has(id string) bool {
	if f, err := o.view.Open(o.loose(id)); err == nil {
		_ = f.Close()
		return true
	}
	raw, err := hex.DecodeString(id)
	if err != nil {
		return false
	}
	for _, p := range o.open {
		if _, ok := p.find(raw); ok {
			return true
		}
	}
	return false
}

// read returns an object whose name was computed from its content.
func (o *objects) read(id string) (kind string, content []byte, err error) {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != o.size {
		return "", nil, fmt.Errorf("%q is not an object's name", id)
	}
	kind, content, err = o.find(id, raw)
	if err != nil {
		return "", nil, fmt.Errorf("object %s: %w", id, err)
	}
	if got := name(o.size, kind, content); got != id {
		return "", nil, fmt.Errorf("object %s: its content has the name %s", id, got)
	}
	return kind, content, nil
}

func (o *objects) find(id string, raw []byte) (kind string, content []byte, err error) {
	f, err := o.view.Open(o.loose(id))
	if err == nil {
		defer f.Close()
		return readLoose(f)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	for _, p := range o.open {
		if at, ok := p.find(raw); ok {
			return o.packed(p, at, 0)
		}
	}
	return "", nil, errMissing
}

// name returns an object's name: the hash of its kind, size and content.
func name(size int, kind string, content []byte) string {
	var h hash.Hash
	if size == sha256.Size {
		h = sha256.New()
	} else {
		h = sha1.New()
	}
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// encode returns the bytes of a loose object's file.
func encode(kind string, content []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b) // writing to a Buffer never fails
	fmt.Fprintf(z, "%s %d\x00", kind, len(content))
	_, _ = z.Write(content)
	_ = z.Close()
	return b.Bytes()
}

func readLoose(f *os.File) (kind string, content []byte, err error) {
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return "", nil, err
	}
	r := bufio.NewReader(io.LimitReader(z, maxObject+64))
	head, err := r.ReadSlice(0)
	if err != nil || len(head) > 40 {
		return "", nil, errors.New("it has no header")
	}
	kind, digits, _ := strings.Cut(string(head[:len(head)-1]), " ")
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || size < 0 || size > maxObject || !known(kind) {
		return "", nil, fmt.Errorf("its header %q is not one of an object that can be imported", head)
	}
	content, err = exactly(r, size)
	return kind, content, err
}

func known(kind string) bool {
	return kind == "commit" || kind == "tree" || kind == "blob" || kind == "tag"
}

// exactly reads size bytes, after which r must end. It allocates for the actual
// bytes, not for what a header promises.
func exactly(r io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("it does not have the %d bytes of its header", size)
	}
	return b.Bytes(), err
}

// packed reads the object at an offset of a pack.
func (o *objects) packed(p *pack, at int64, depth int) (kind string, content []byte, err error) {
	if at < 12 || at >= p.size {
		return "", nil, errors.New("it begins outside of its pack")
	}
	if depth > maxDelta {
		return "", nil, errors.New("too many deltas on each other")
	}
	r := bufio.NewReader(io.NewSectionReader(p.data, at, p.size-at))
	c, err := r.ReadByte()
	if err != nil {
		return "", nil, err
	}
	typ, size := c>>4&7, int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = r.ReadByte(); err != nil || shift > 32 {
			return "", nil, errors.New("its size cannot be read")
		}
		size |= int64(c&0x7f) << shift
	}
	if size > maxObject {
		return "", nil, errors.New("it is too large")
	}
	var base func() (string, []byte, error)
	switch typ {
	case 1, 2, 3, 4:
		kind = []string{"commit", "tree", "blob", "tag"}[typ-1]
	case 6:
		back, err := offset(r)
		if err != nil {
			return "", nil, err
		}
		base = func() (string, []byte, error) { return o.packed(p, at-back, depth+1) }
	case 7:
		id := make([]byte, o.size)
		if _, err := io.ReadFull(r, id); err != nil {
			return "", nil, err
		}
		there, ok := p.find(id)
		if !ok {
			return "", nil, errors.New("what it is a delta of is in another pack")
		}
		base = func() (string, []byte, error) { return o.packed(p, there, depth+1) }
	default:
		return "", nil, fmt.Errorf("it has the unknown type %d", typ)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return "", nil, err
	}
	content, err = exactly(z, size)
	if err != nil || base == nil {
		return kind, content, err
	}
	kind, from, err := base()
	if err != nil {
		return "", nil, err
	}
	content, err = patch(from, content)
	return kind, content, err
}

// offset reads how far back a delta's base is.
func offset(r io.ByteReader) (int64, error) {
	c, err := r.ReadByte()
	n := int64(c & 0x7f)
	for err == nil && c&0x80 != 0 {
		if c, err = r.ReadByte(); n > 1<<48 {
			return 0, errors.New("its base is too far away")
		}
		n = (n+1)<<7 | int64(c&0x7f)
	}
	return n, err
}

var errDelta = errors.New("its delta is damaged")

// patch applies a delta.
func patch(from, delta []byte) ([]byte, error) {
	was, delta, ok1 := varint(delta)
	will, delta, ok2 := varint(delta)
	if !ok1 || !ok2 || was != int64(len(from)) || will > maxObject {
		return nil, errDelta
	}
	var to []byte
	for len(delta) > 0 {
		c := delta[0]
		delta = delta[1:]
		var part []byte
		switch {
		case c&0x80 != 0:
			var at, n int64
			for i := range 7 {
				if c&(1<<i) == 0 {
					continue
				}
				if len(delta) == 0 {
					return nil, errDelta
				}
				if i < 4 {
					at |= int64(delta[0]) << (8 * i)
				} else {
					n |= int64(delta[0]) << (8 * (i - 4))
				}
				delta = delta[1:]
			}
			if n == 0 {
				n = 0x10000
			}
			if at+n > int64(len(from)) {
				return nil, errDelta
			}
			part = from[at : at+n]
		case c != 0 && int(c) <= len(delta):
			part, delta = delta[:c], delta[c:]
		default:
			return nil, errDelta
		}
		if int64(len(to)+len(part)) > will {
			return nil, errDelta
		}
		to = append(to, part...)
	}
	if int64(len(to)) != will {
		return nil, errDelta
	}
	return to, nil
}

func varint(b []byte) (n int64, rest []byte, ok bool) {
	for shift := 0; len(b) > 0 && shift < 63; shift += 7 {
		c := b[0]
		b = b[1:]
		n |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			return n, b, n >= 0
		}
	}
	return 0, nil, false
}
