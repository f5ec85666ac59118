//go:build !unix

package ownfile

import "io/fs"

// notOurs finds nothing: on Windows Go makes up the mode, and a user's folders
// are closed to others.
func notOurs(fs.FileInfo) string { return "" }
