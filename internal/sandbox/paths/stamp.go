package paths

import (
	"os"
	"time"
)

// A Stamp tells whether a file is the one it was, without reading it.
type Stamp struct {
	Size    int64
	Mode    os.FileMode
	Mod     time.Time
	Changed time.Time // when anything about it changed; mod where the system does not tell
	Dev     uint64
	Ino     uint64
	Links   uint64
	Exact   bool // changed cannot be set by the file's owner, and ino is known
}
