//go:build !unix

package runner

import "os"

// sameDevice returns false: file systems are not examined here.
func sameDevice(os.FileInfo, os.FileInfo) bool { return false }
