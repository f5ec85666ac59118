package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// swap exchanges two folders in one step. If the file system cannot do that, the
// error is [errors.ErrUnsupported].
func swap(root *os.Root, a, b string) error {
	return between(root, a, b, func(adir int, a string, bdir int, b string) error {
		err := unix.Renameat2(adir, a, bdir, b, unix.RENAME_EXCHANGE)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
			return errors.ErrUnsupported
		}
		return err
	})
}
