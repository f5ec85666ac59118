//go:build !unix

package launch

import "io/fs"

// strangers finds nothing here: the folder's permissions decide who can put programs there.
func strangers(_, _ fs.FileInfo) string { return "" }
