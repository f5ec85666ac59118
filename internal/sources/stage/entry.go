package stage

import "io/fs"

// A Kind is what an entry is.
type Kind int

// The kinds that come in. Whatever else a source has, its reader passes as Other with
// the reason in Entry.Target.
const (
	File Kind = iota
	Folder
	Link
	Other
)

// An Entry is one file, folder or link of a source.
type Entry struct {
	Path   string // with slashes, relative
	Kind   Kind
	Exec   bool   // of a file: somebody may execute it
	Target string // of a link; of Other: what it is, such as "a device"
}

// FileEntry is the entry of a regular file with this mode.
func FileEntry(path string, mode fs.FileMode) Entry {
	if mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return Entry{Path: path, Kind: Other, Target: "a program that runs as somebody else (setuid)"}
	}
	return Entry{Path: path, Exec: mode&0o111 != 0}
}

// Special says what a file is that is neither a regular file nor a folder nor a link.
func Special(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "neither a file nor a folder"
}
