package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// maxKept is how many bytes of a pack, and of what is in it, are kept in memory. Larger
// ones are read from the disk, each object whenever it is needed.
const maxKept = 32 << 20

// perEntry is about how many bytes of memory an entry takes besides its data. Without it, a
// pack of 16 MB with a million small objects took 250 MB.
const perEntry = 256

// A packed is one entry of a pack: an object, or a delta until its base is known.
type packed struct {
	kind   plumbing.ObjectType
	data   []byte
	deltas []int // the entries that name this one as their base, by its place
}

// unpack returns the objects of a pack, each under the hash of its bytes, which is
// computed here. It returns nil if they have more than maxKept bytes.
func unpack(pack []byte) (*memory.Storage, error) {
	u := unpacker{pack: pack, in: bytes.NewReader(pack), left: maxKept}
	n, err := u.header()
	if err != nil {
		return nil, err
	}
	for range n {
		if err := u.entry(); err != nil {
			return u.failed(err)
		}
	}
	var end [sha1.Size]byte
	sum := sha1.Sum(pack[:len(pack)-u.in.Len()])
	if _, err := io.ReadFull(u.in, end[:]); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if end != sum || u.in.Len() > 0 {
		return nil, errors.New("the pack is damaged: its checksum is of other bytes")
	}
	objects, err := u.resolve()
	if err != nil {
		return u.failed(err)
	}
	return objects, nil
}

// errNotKept says that a pack has more than maxKept bytes.
var errNotKept = errors.New("too large to be kept in memory")

type unpacker struct {
	pack []byte
	in   *bytes.Reader
	zip  io.ReadCloser
	left int64 // of maxKept

	entries []packed
	places  map[int64]int           // :: offset in the pack → the entry there
	waiting map[plumbing.Hash][]int // :: hash of a base → the deltas that name it by that
}

func (u *unpacker) failed(err error) (*memory.Storage, error) {
	if errors.Is(err, errNotKept) {
		return nil, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

// header reads the number of entries.
func (u *unpacker) header() (n uint32, err error) {
	var head [12]byte
	if _, err := io.ReadFull(u.in, head[:]); err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	if string(head[:8]) != "PACK\x00\x00\x00\x02" {
		return 0, errors.New("what was sent is not a pack of version 2")
	}
	if n = binary.BigEndian.Uint32(head[8:]); n > maxCount {
		return 0, fmt.Errorf("%w: %d objects, and %d is the limit", stage.ErrTooLarge, n, maxCount)
	}
	u.places, u.waiting = map[int64]int{}, map[plumbing.Hash][]int{}
	return n, nil
}

// take reserves bytes of memory.
func (u *unpacker) take(size int64) error {
	if size > u.left {
		return errNotKept
	}
	u.left -= size
	return nil
}

// entry reads the next entry.
func (u *unpacker) entry() error {
	at := u.in.Size() - int64(u.in.Len())
	c, err := u.in.ReadByte()
	if err != nil {
		return err
	}
	e, size := packed{kind: plumbing.ObjectType(c >> 4 & 7)}, int64(c&0xf)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = u.in.ReadByte(); err != nil {
			return err
		}
		if shift > 32 {
			return errNotKept
		}
		size |= int64(c&0x7f) << shift
	}
	i := len(u.entries)
	switch e.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.OFSDeltaObject:
		base, ok, err := u.base(at)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("the pack is damaged: there is no object before the delta at byte %d", at)
		}
		u.entries[base].deltas = append(u.entries[base].deltas, i)
	case plumbing.REFDeltaObject:
		var h plumbing.Hash
		if _, err := io.ReadFull(u.in, h[:]); err != nil {
			return err
		}
		u.waiting[h] = append(u.waiting[h], i)
	default:
		return fmt.Errorf("the pack is damaged: the object at byte %d has the kind %d", at, e.kind)
	}
	if err := u.take(perEntry); err != nil {
		return err
	}
	if e.data, err = u.inflate(size); err != nil {
		return err
	}
	u.entries, u.places[at] = append(u.entries, e), i
	return nil
}

// base reads how far before a delta its base is, and returns the entry there.
func (u *unpacker) base(at int64) (i int, ok bool, err error) {
	c, err := u.in.ReadByte()
	if err != nil {
		return 0, false, err
	}
	back := int64(c & 0x7f)
	for c&0x80 != 0 {
		if c, err = u.in.ReadByte(); err != nil {
			return 0, false, err
		}
		if back = (back+1)<<7 | int64(c&0x7f); back > at {
			return 0, false, nil
		}
	}
	i, ok = u.places[at-back]
	return i, ok, nil
}

// inflate reads compressed data that must have exactly size bytes.
func (u *unpacker) inflate(size int64) ([]byte, error) {
	if err := u.take(size); err != nil {
		return nil, err
	}
	var err error
	if u.zip == nil {
		u.zip, err = zlib.NewReader(u.in)
	} else {
		err = u.zip.(zlib.Resetter).Reset(u.in, nil)
	}
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(u.zip, data); err != nil {
		return nil, err
	}
	if n, err := u.zip.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		if err == nil || errors.Is(err, io.EOF) {
			err = errors.New("the pack is damaged: an object has more bytes than it says")
		}
		return nil, err
	}
	return data, nil
}

// resolve makes objects of all entries. Each delta is applied once, when its base is
// known.
func (u *unpacker) resolve() (*memory.Storage, error) {
	objects, done := memory.NewStorage(), 0
	var ready []int
	for i := range u.entries {
		if !u.entries[i].kind.IsDelta() {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		e := &u.entries[ready[len(ready)-1]]
		ready = ready[:len(ready)-1]
		h, err := objects.SetEncodedObject(&unpacked{plumbing.ComputeHash(e.kind, e.data), e.kind, e.data})
		if err != nil {
			return nil, err
		}
		done++
		deltas := append(e.deltas, u.waiting[h]...)
		delete(u.waiting, h)
		for _, i := range deltas {
			if err := u.apply(e, &u.entries[i]); err != nil {
				return nil, err
			}
			ready = append(ready, i)
		}
		e.data, e.deltas = nil, nil
	}
	if done < len(u.entries) {
		return nil, errors.New("the pack is damaged: the base of a delta is not in it")
	}
	return objects, nil
}

// apply makes an object of a delta.
func (u *unpacker) apply(base, delta *packed) error {
	_, n := binary.Uvarint(delta.data) // the size of the base
	size, m := binary.Uvarint(delta.data[max(n, 0):])
	if n <= 0 || m <= 0 {
		return errors.New("the pack is damaged: a delta does not say how large its object is")
	}
	if size > maxKept {
		return errNotKept
	}
	err := u.take(int64(size))
	if err != nil {
		return err
	}
	delta.kind = base.kind
	if delta.data, err = packfile.PatchDelta(base.data, delta.data); err != nil {
		return fmt.Errorf("the pack is damaged: %w", err)
	}
	return nil
}

// An unpacked is an object with a hash that was computed from its bytes. It does not change.
type unpacked struct {
	hash plumbing.Hash
	kind plumbing.ObjectType
	data []byte
}

func (o *unpacked) Hash() plumbing.Hash             { return o.hash }
func (o *unpacked) Type() plumbing.ObjectType       { return o.kind }
func (o *unpacked) Size() int64                     { return int64(len(o.data)) }
func (o *unpacked) Reader() (io.ReadCloser, error)  { return opened{bytes.NewReader(o.data)}, nil }
func (o *unpacked) SetType(plumbing.ObjectType)     {}
func (o *unpacked) SetSize(int64)                   {}
func (o *unpacked) Writer() (io.WriteCloser, error) { return nil, errors.ErrUnsupported }

// opened reads an unpacked object. It has a method Len, so a stage knows the size.
type opened struct{ *bytes.Reader }

func (opened) Close() error { return nil }
