//go:build !unix

package grantfile

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
