//go:build !unix

package sandbox

import "os"

// A tempFolder is a run's temporary folder.
type tempFolder struct{ path string }

// newTemp makes a temporary folder in an existing one; empty: the system's.
func newTemp(parent string) (*tempFolder, error) {
	path, err := os.MkdirTemp(parent, "packs-run-")
	return &tempFolder{path}, err
}

// remove removes the folder with everything in it.
func (t *tempFolder) remove() error { return removeFolder(t.path) }

// sweepTemp does nothing: nothing tells a folder in use from one that was left.
func sweepTemp(string) error { return nil }
