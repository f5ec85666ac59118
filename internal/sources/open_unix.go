//go:build unix

package sources

import "syscall"

// openFlags keeps a pipe in place of a file from blocking us, and a link from leading
// elsewhere.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW
