package packs

import (
	"hash/maphash"
	"strings"
)

// An arena holds long-lived strings. Allocated one by one between a scan's
// short-lived strings, they would fragment the heap. A dropped string takes up memory
// until all strings in the same piece are dropped.
type arena struct {
	b    strings.Builder
	size int // of all texts so far
}

// arenaPiece is the largest piece that is allocated for several texts, in bytes.
const arenaPiece = 8 << 10

// text returns a copy of s.
func (k *arena) text(s string) string {
	begin := k.reserve(len(s))
	k.b.WriteString(s)
	return k.b.String()[begin:]
}

// bytes is text for a byte slice.
func (k *arena) bytes(s []byte) string {
	begin := k.reserve(len(s))
	k.b.Write(s)
	return k.b.String()[begin:]
}

// reserve makes room for n bytes and returns the offset where they begin.
func (k *arena) reserve(n int) int {
	if k.b.Cap()-k.b.Len() < n {
		k.b.Reset()
		k.b.Grow(max(n, min(k.size, arenaPiece))) // few texts get a small piece
	}
	k.size += n
	return k.b.Len()
}

// once returns the shared copy of a name that many packs have.
func (s *scanner) once(name string) string {
	if known, ok := s.names[name]; ok {
		return known
	}
	name = strings.Clone(name) // does not keep the string it was cut from
	s.names[name] = name
	return name
}

// keepPlace returns copies of a pack's path, absolute and relative to its root. Mostly,
// the second shares memory with the first.
func (s *scanner) keepPlace(dir, at string) (string, string) {
	dir = s.places.text(dir)
	if strings.HasSuffix(dir, at) {
		return dir, dir[len(dir)-len(at):]
	}
	return dir, s.places.text(at)
}

// packPiece is how many packs are allocated at once: 32 KiB, less one for the
// allocator's overhead.
const packPiece = 127

// newPack returns an empty pack. Packs are allocated together for the same reason as
// the texts of an arena.
func (s *scanner) newPack() *Pack {
	if len(s.free) == 0 {
		s.free = make([]Pack, min(packPiece, max(1, len(s.found))))
	}
	p := &s.free[0]
	s.free = s.free[1:]
	return p
}

// A seen is a set of paths. It holds 64-bit hashes with a random seed, since the paths
// of a large root would take several times the memory. A collision is too unlikely to
// matter.
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
