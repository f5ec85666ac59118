//go:build unix

package sources

import "syscall"

// openFlags keep a pipe in the place of a file from making us wait, and a link from
// leading elsewhere.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW
