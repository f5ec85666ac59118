package packfs

import (
	"errors"
	"slices"
	"syscall"
)

// IsStarved reports whether an operation failed because the process or the machine ran out
// of descriptors or memory. Such an error says nothing about the file.
func IsStarved(err error) bool {
	return slices.ContainsFunc(starving(), func(e syscall.Errno) bool { return errors.Is(err, e) })
}
