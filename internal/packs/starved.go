package packs

// This file says what a scan does when it runs out of descriptors or memory.

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// note records err if it says that the process ran out of something. err may be nil.
func (s *scanner) note(err error) {
	if s.starved == nil && packfs.IsStarved(err) {
		s.starved = err
	}
}

// ended says why the scan has to stop: ctx ended, or the result has to be complete and
// cannot be. Otherwise it returns nil.
func (s *scanner) ended() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.whole && s.starved != nil {
		return fmt.Errorf("looking through %q: %w", s.root.Dir, s.starved)
	}
	return nil
}
