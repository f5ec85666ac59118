//go:build !unix

package copies

import "io/fs"

// copyMode lets the folder be removed again; without a right to write it could
// not be, here.
const copyMode = 0o700

// Modes and owners tell nothing here: access lists do, and a folder below the
// user's own profile is the user's own.

func ownedByUs(fs.FileInfo) bool { return true }

func openToOthers(fs.FileInfo) bool { return false }
