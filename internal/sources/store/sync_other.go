//go:build !linux

package store

import "os"

// late says that files are made durable after they were staged. Here they are made
// durable while they come in, since Windows syncs no file that was opened for reading.
const late = false

// syncAll cannot make a whole file system durable here.
func syncAll(*os.File) (bool, error) { return false, nil }

// allocate returns false: the room has to be written.
func allocate(*os.File, int64) (bool, error) { return false, nil }
