package tree

import "io/fs"

const nonblock = 0

// system adds nothing: here a file's content decides whether it changed.
func system(*Meta, fs.FileInfo) {}
