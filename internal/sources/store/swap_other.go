//go:build !linux && !darwin

package store

import (
	"errors"
	"os"
)

// swap cannot exchange two folders here.
func swap(*os.Root, string, string) error { return errors.ErrUnsupported }
