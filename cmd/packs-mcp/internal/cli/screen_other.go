//go:build !windows

package cli

import "os"

// hasStyles reports whether a terminal understands escape sequences. name is the
// value of TERM.
func hasStyles(_ *os.File, name string) bool { return name != "" && name != "dumb" }
