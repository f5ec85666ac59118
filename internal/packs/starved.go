package packs

// What a scan does that runs out of descriptors or memory.

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// note takes what a look failed for; nil: it did not.
func (s *scanner) note(err error) {
	if s.starved == nil && packfs.IsStarved(err) {
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
