// Package attach records which packs a person attached and detached, in one small
// file in the state directory, so that it survives a restart of the server.
//
// It does not know which packs exist and decides nothing about them: package packs
// compares this record with what it finds.
package attach

import (
	"maps"
	"slices"
	"time"
)

// An Entry is one pack that a person attached.
type Entry struct {
	// Dir is the pack's directory, absolute and with symlinks resolved. The
	// entry is for this directory only: another directory that later gets the
	// same pack id is not attached.
	Dir string `json:"dir"`
	// Trust is what the person said about the pack, "user" or "untrusted", or
	// empty when its root decides.
	Trust string    `json:"trust,omitempty"`
	Since time.Time `json:"since"`
}

// A Set is what a person chose. The zero value is empty. A copy shares its
// maps; see [Set.Clone].
type Set struct {
	Attached map[string]Entry     `json:"attached,omitempty"` // :: pack id → entry
	Detached map[string]time.Time `json:"detached,omitempty"` // :: pack id → when it was detached; overrides a root that attaches all
}

// Attach adds the pack and replaces what was recorded for its id before.
func (s *Set) Attach(id string, e Entry) {
	if s.Attached == nil {
		s.Attached = make(map[string]Entry)
	}
	s.Attached[id] = e
	delete(s.Detached, id)
}

// Detach removes the pack. A root that attaches all its packs no longer attaches
// it.
func (s *Set) Detach(id string, at time.Time) {
	if s.Detached == nil {
		s.Detached = make(map[string]time.Time)
	}
	s.Detached[id] = at
	delete(s.Attached, id)
}

// IsDetached reports whether a person detached the pack.
func (s Set) IsDetached(id string) bool {
	_, ok := s.Detached[id]
	return ok
}

// IDs returns the ids of attached packs, sorted.
func (s Set) IDs() []string { return slices.Sorted(maps.Keys(s.Attached)) }

// Clone returns a Set that shares nothing with s.
func (s Set) Clone() Set {
	return Set{Attached: maps.Clone(s.Attached), Detached: maps.Clone(s.Detached)}
}
