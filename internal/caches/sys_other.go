//go:build !unix

package caches

import "io/fs"

const noFollow = 0

// Modes and owners tell nothing here: access lists do, and a folder below the
// user's own profile is the user's own.

func ownedByUs(fs.FileInfo) bool { return true }

func openToOthers(fs.FileInfo) bool { return false }
