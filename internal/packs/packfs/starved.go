package packfs

import (
	"errors"
	"slices"
	"syscall"
)

// IsStarved reports whether a look failed for want of what a process, or the
// machine, can run out of: descriptors and memory. Such an error says nothing of
// what was to be looked at.
func IsStarved(err error) bool {
	return slices.ContainsFunc(starving(), func(e syscall.Errno) bool { return errors.Is(err, e) })
}
