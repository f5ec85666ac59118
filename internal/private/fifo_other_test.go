//go:build !unix

package private

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
