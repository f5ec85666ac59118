//go:build !unix

package private

import "io/fs"

const openFlags = 0

// Modes show nothing here: they do not reflect access control lists, and the
// state folder is the user's own.
const (
	writableByOthers fs.FileMode = 0
	readableByOthers fs.FileMode = 0
	accessForOthers  fs.FileMode = 0
)

func ownedByUs(fs.FileInfo) bool { return true }

func folderOpen(fs.FileInfo) bool { return false }

// syncDir does nothing: a directory cannot be synced.
func syncDir(string) error { return nil }
