package packs

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// isStarved reports whether a look failed for want of what a process can run
// out of, descriptors and memory. Such an error says nothing of what was to be
// looked at.
func isStarved(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}, func(e error) bool { return errors.Is(err, e) })
}

// note takes what a look failed for; nil: it did not.
func (s *scanner) note(err error) {
	if s.starved == nil && isStarved(err) {
		s.starved = err
	}
}

// ended says why the scan is of no use any more: ctx ended, or what it found has
// to be whole, and is not. It is nil as long as neither is so.
func (s *scanner) ended() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.whole && s.starved != nil {
		return fmt.Errorf("looking through %q: %w", s.root.Dir, s.starved)
	}
	return nil
}
