//go:build !linux && !darwin

package runner

import "errors"

// cloneFile fails: files are not cloned on this system.
func cloneFile(string, string) error { return errors.ErrUnsupported }
