//go:build !unix

package config

import "io/fs"

// notOurs cannot be told from the mode that Go makes up on Windows, where a
// user's folders are closed to others.
func notOurs(fs.FileInfo) string { return "" }
