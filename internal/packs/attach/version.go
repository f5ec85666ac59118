package attach

import (
	"os"
	"time"
)

// A Version identifies the content of a Store's file. When the file is replaced as a
// whole, as Update does it, at least one of the fields changes. The zero value is that
// of a file that is not there.
type Version struct {
	modified time.Time
	size     int64
	info     os.FileInfo // compared with os.SameFile
}

// Version returns the version of the file as it is now. That of a nil Store never changes.
func (s *Store) Version() Version {
	if s == nil {
		return Version{}
	}
	info, err := os.Lstat(s.Path())
	if err != nil {
		return Version{}
	}
	return Version{modified: info.ModTime(), size: info.Size(), info: info}
}

// Equal reports whether two versions are the same.
func (v Version) Equal(o Version) bool {
	if v.info == nil || o.info == nil {
		return v.info == nil && o.info == nil
	}
	return v.modified.Equal(o.modified) && v.size == o.size && os.SameFile(v.info, o.info)
}
