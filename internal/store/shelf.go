package store

import (
	"context"
	"errors"
	"time"
)

// A Shelf is the entries of a mirror whose keys begin with a prefix, for values that
// expire when no replica renews them. It is safe for concurrent use.
type Shelf struct {
	mirror *Mirror
	prefix string
	lasts  time.Duration
}

// Shelf returns the entries with a prefix. Each lasts for this long after it was saved.
func (m *Mirror) Shelf(prefix string, lasts time.Duration) *Shelf { return &Shelf{m, prefix, lasts} }

// Sync returns when Known has everything that any replica saved before the call.
func (s *Shelf) Sync(ctx context.Context) error { return s.mirror.Sync(ctx) }

// Known returns the value under a name and its revision, as the mirror has it; 0 is the
// revision of none.
func (s *Shelf) Known(name string) (value []byte, rev uint64) {
	e, _ := s.mirror.Entry(s.prefix + name)
	return e.Value, e.Rev
}

// Latest is Known as the engine has it now.
func (s *Shelf) Latest(ctx context.Context, name string) (value []byte, rev uint64, err error) {
	e, err := s.mirror.Get(ctx, s.prefix+name)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return e.Value, e.Rev, err
}

// Save saves a value in place of the one with a revision, 0 for none, and returns its own
// revision. It reports false if another replica was faster.
func (s *Shelf) Save(ctx context.Context, name string, value []byte, rev uint64) (now uint64, saved bool, err error) {
	now, err = s.mirror.Put(ctx, s.prefix+name, value, rev, s.lasts)
	if errors.Is(err, ErrConflict) {
		return 0, false, nil
	}
	return now, err == nil, err
}
