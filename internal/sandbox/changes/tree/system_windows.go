package tree

import "io/fs"

const nonblock = 0

// system adds nothing: what a file's content is decides here whether it
// changed.
func system(*Meta, fs.FileInfo) {}
