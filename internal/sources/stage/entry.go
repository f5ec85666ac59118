package stage

import "io/fs"

// A Kind is the type of an entry.
type Kind int

// The kinds that may come in. A reader passes everything else as Other, with the
// reason in Entry.Target.
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
	Exec   bool   // of a file: it is executable
	Target string // of a link; of Other: what it is, such as "a device"
}

// FileEntry returns the entry of a regular file with this mode.
func FileEntry(path string, mode fs.FileMode) Entry {
	if mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return Entry{Path: path, Kind: Other, Target: "a program that runs as somebody else (setuid)"}
	}
	return Entry{Path: path, Exec: mode&0o111 != 0}
}

// Special describes a file that is not a regular file, a folder or a link.
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
