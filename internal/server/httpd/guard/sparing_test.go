package guard

import (
	"testing"
	"time"
)

// Lines that anyone can cause are not all logged, but the number of lines left
// out is.
func TestSparing(t *testing.T) {
	var s sparing
	now := time.Now()
	logged := 0
	for range 6 * sparingLines {
		if _, ok := s.allow(now); ok {
			logged++
		}
	}
	if logged != sparingLines {
		t.Errorf("%d lines for %d requests, want %d", logged, 6*sparingLines, sparingLines)
	}
	if unsaid, ok := s.allow(now.Add(sparingTime)); !ok || unsaid != 5*sparingLines {
		t.Errorf("a minute later: %d unsaid, %v, want %d", unsaid, ok, 5*sparingLines)
	}
}
