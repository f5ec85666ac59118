package packs

import (
	"hash/maphash"
	"strings"
)

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
	dir = s.places.Text(dir)
	if strings.HasSuffix(dir, at) {
		return dir, dir[len(dir)-len(at):]
	}
	return dir, s.places.Text(at)
}

// packPiece is how many packs are allocated at once: 32 KiB, less one for the
// allocator's overhead.
const packPiece = 127

// newPack returns an empty pack. Packs are allocated together for the same reason as
// the texts of an [arena.Strings].
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
