package packs

import (
	"hash/maphash"
	"strings"
)

// A keep holds texts that stay, together. Made one by one between those that a
// scan needs for a moment, they would leave holes as large as themselves. A text
// that is dropped takes up its room until the others near it are.
type keep struct {
	b    strings.Builder
	size int // of all so far
}

// keepPiece is how many bytes are kept together at most.
const keepPiece = 8 << 10

// text returns a copy of s.
func (k *keep) text(s string) string {
	begin := k.room(len(s))
	k.b.WriteString(s)
	return k.b.String()[begin:]
}

// bytes is text of bytes.
func (k *keep) bytes(s []byte) string {
	begin := k.room(len(s))
	k.b.Write(s)
	return k.b.String()[begin:]
}

// room makes room for n bytes, and returns where they begin.
func (k *keep) room(n int) int {
	if k.b.Cap()-k.b.Len() < n {
		k.b.Reset()
		k.b.Grow(max(n, min(k.size, keepPiece))) // of few texts, no more than they need
	}
	k.size += n
	return k.b.Len()
}

// once returns the one copy of a name that many packs have.
func (s *scanner) once(name string) string {
	if known, ok := s.names[name]; ok {
		return known
	}
	name = strings.Clone(name) // and not all that it is a part of
	s.names[name] = name
	return name
}

// keepPlace returns copies of where a pack is: absolute, and relative to its root.
// Mostly, the second is a part of the first.
func (s *scanner) keepPlace(dir, at string) (string, string) {
	dir = s.places.text(dir)
	if strings.HasSuffix(dir, at) {
		return dir, dir[len(dir)-len(at):]
	}
	return dir, s.places.text(at)
}

// packPiece is how many packs are made at once: 32 KiB, and one less for what the
// allocator adds.
const packPiece = 127

// newPack returns a pack to fill in, beside the one before, for the same reason.
func (s *scanner) newPack() *Pack {
	if len(s.free) == 0 {
		s.free = make([]Pack, min(packPiece, max(1, len(s.found))))
	}
	p := &s.free[0]
	s.free = s.free[1:]
	return p
}

// A seen is a set of paths. It holds their hashes, of 64 bits and a seed of its own:
// the paths of a large root would take several times the memory. That one path is
// taken for another will not happen.
type seen struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newSeen() seen { return seen{maphash.MakeSeed(), make(map[uint64]struct{})} }

func (s seen) add(path string) { s.hashes[maphash.String(s.seed, path)] = struct{}{} }

func (s seen) has(path string) bool {
	_, ok := s.hashes[maphash.String(s.seed, path)]
	return ok
}
