package gitdata

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
)

// An index is git's list of the files in the next commit.
type index struct {
	size    int // bytes of an id
	entries []indexEntry
}

type indexEntry struct {
	stat  [40]byte // times, device, inode, mode, owner, group and size, as on disk
	mode  uint32
	id    string
	flags uint16 // without the length of the name
	more  uint16 // of version 3
	path  string
}

const (
	flagExtended = 0x4000
	flagStage    = 0x3000
	flagNameLen  = 0x0fff
	modeAt       = 24 // in stat
)

var errIndex = errors.New("the index is damaged")

// parseIndex reads an index of version 2, 3 or 4. It refuses one with an
// extension that must be understood: a split or a sparse index.
func parseIndex(data []byte, size int) (*index, error) {
	if len(data) < 12+size || string(data[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil, fmt.Errorf("the index has the version %d", version)
	}
	body, sum := data[:len(data)-size], data[len(data)-size:]
	h := newHash(size)
	h.Write(body)
	if !bytes.Equal(h.Sum(nil), sum) && !bytes.Equal(sum, make([]byte, size)) { // index.skipHash leaves zeros
		return nil, errIndex
	}
	x := &index{size: size}
	rest, last := body[12:], ""
	for range count {
		var e indexEntry
		var err error
		if e, rest, err = readEntry(rest, size, version, last); err != nil {
			return nil, err
		}
		last = e.path
		x.entries = append(x.entries, e)
	}
	for len(rest) > 0 {
		if len(rest) < 8 {
			return nil, errIndex
		}
		n := int64(binary.BigEndian.Uint32(rest[4:]))
		if rest[0] < 'A' || rest[0] > 'Z' || int64(len(rest)) < 8+n {
			return nil, fmt.Errorf("the index has the extension %q, which is not understood", rest[:4])
		}
		rest = rest[8+n:]
	}
	return x, nil
}

func newHash(size int) hash.Hash {
	if size == sha256.Size {
		return sha256.New()
	}
	return sha1.New()
}

func readEntry(b []byte, size int, version uint32, last string) (e indexEntry, rest []byte, err error) {
	fixed := 40 + size + 2
	if len(b) < fixed+1 {
		return e, nil, errIndex
	}
	copy(e.stat[:], b)
	e.mode = binary.BigEndian.Uint32(b[modeAt:])
	e.id = hex.EncodeToString(b[40 : 40+size])
	e.flags = binary.BigEndian.Uint16(b[40+size:]) &^ flagNameLen
	if e.flags&flagExtended != 0 {
		if version < 3 || len(b) < fixed+3 {
			return e, nil, errIndex
		}
		e.more = binary.BigEndian.Uint16(b[fixed:])
		fixed += 2
	}
	if version == 4 {
		strip, n := uint64(0), fixed
		for {
			if n >= len(b) || strip > 1<<32 {
				return e, nil, errIndex
			}
			c := b[n]
			n++
			strip = strip<<7 | uint64(c&0x7f)
			if c&0x80 == 0 {
				break
			}
			strip++
		}
		tail, rest, ok := bytes.Cut(b[n:], []byte{0})
		if !ok || strip > uint64(len(last)) {
			return e, nil, errIndex
		}
		e.path = last[:len(last)-int(strip)] + string(tail)
		return e, rest, nil
	}
	name, _, ok := bytes.Cut(b[fixed:], []byte{0})
	if !ok {
		return e, nil, errIndex
	}
	e.path = string(name)
	total := (fixed + len(name) + 8) &^ 7 // one to eight zeros
	if len(b) < total {
		return e, nil, errIndex
	}
	return e, b[total:], nil
}

// encode returns the bytes of the index without extensions, which git recreates.
func (x *index) encode() []byte {
	slices.SortStableFunc(x.entries, func(a, b indexEntry) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.flags&flagStage, b.flags&flagStage))
	})
	version := uint32(2)
	for i := range x.entries {
		if x.entries[i].more != 0 {
			version = 3
		}
	}
	b := binary.BigEndian.AppendUint32([]byte("DIRC"), version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(x.entries)))
	for i := range x.entries {
		e := &x.entries[i]
		start := len(b)
		binary.BigEndian.PutUint32(e.stat[modeAt:], e.mode)
		b = append(b, e.stat[:]...)
		id, _ := hex.DecodeString(e.id) // it was made from bytes
		b = append(b, id...)
		flags := e.flags &^ flagExtended
		if e.more != 0 {
			flags |= flagExtended
		}
		b = binary.BigEndian.AppendUint16(b, flags|uint16(min(len(e.path), flagNameLen)))
		if e.more != 0 {
			b = binary.BigEndian.AppendUint16(b, e.more)
		}
		b = append(b, e.path...)
		b = append(b, make([]byte, 8-(len(b)-start)%8)...)
	}
	h := newHash(x.size)
	h.Write(b)
	return h.Sum(b)
}

// MaxIndex bounds the size of an index that is compared with another.
const MaxIndex = 64 << 20

// SameIndex reports whether two index files agree about every path, so that one is at
// most a refresh of the other.
func SameIndex(a, b []byte) bool {
	for _, size := range []int{sha1.Size, sha256.Size} {
		x, err1 := parseIndex(a, size)
		y, err2 := parseIndex(b, size)
		if err1 != nil || err2 != nil {
			continue
		}
		return slices.EqualFunc(x.entries, y.entries, func(p, q indexEntry) bool {
			return p.path == q.path && p.id == q.id && p.mode == q.mode && p.flags == q.flags && p.more == q.more
		})
	}
	return false
}

// follow updates the entries that equal the old tree to the new one. The trees are
// flat.
func (x *index) follow(old, new map[string]treeEntry) error {
	var kept []indexEntry
	have := map[string]bool{}
	folders := map[string]bool{}
	for _, e := range x.entries {
		was, ok := old[e.path]
		if ok && e.flags&flagStage == 0 && was.id == e.id && was.mode == e.mode && e.more == 0 {
			is, still := new[e.path]
			if !still {
				continue
			}
			if is.id != e.id || is.mode != e.mode {
				e = indexEntry{id: is.id, mode: is.mode, path: e.path} // git will examine the file again
			}
		}
		have[e.path] = true
		kept = append(kept, e)
	}
	for path, is := range new {
		if _, was := old[path]; !was && !have[path] {
			have[path] = true
			kept = append(kept, indexEntry{id: is.id, mode: is.mode, path: path})
		}
	}
	for path := range have {
		for i := range len(path) {
			if path[i] == '/' {
				folders[path[:i]] = true
			}
		}
	}
	for path := range have {
		if folders[path] {
			return fmt.Errorf("%q is staged as a file, and a folder in the new commit", path)
		}
	}
	x.entries = kept
	return nil
}
