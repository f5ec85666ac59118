package paths

import (
	"os"
	"time"
)

// A Stamp tells whether a file has changed, without reading it.
type Stamp struct {
	Size    int64
	Mode    os.FileMode
	Mod     time.Time
	Changed time.Time // last change of content or status; mod where the system has no such time
	Dev     uint64
	Ino     uint64
	Links   uint64
	Exact   bool // changed cannot be set by the file's owner, and ino is known
}
