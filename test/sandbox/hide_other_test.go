//go:build unix && !linux

package sandbox_test

import "errors"

const canHide = false

func hide(string) error { return errors.ErrUnsupported }
