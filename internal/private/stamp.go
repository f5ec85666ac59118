package private

import (
	"io/fs"
	"os"
	"time"
)

// settled is how long after a change a file's times are sure to show any further
// change: twice the resolution of the coarsest file system clocks.
const settled = 4 * time.Second

// A Stamp records how a file looked at some moment, to tell later whether it
// must be read again. The zero Stamp belongs to no file.
type Stamp struct {
	info    fs.FileInfo
	changed time.Time // of the content or of the mode, whichever is known and later
	taken   time.Time
}

func (f *File) stamp(info fs.FileInfo) Stamp {
	s := Stamp{info: info, changed: info.ModTime(), taken: time.Now()}
	if f.Now != nil {
		s.taken = f.Now()
	}
	if t := changeTime(info); t.After(s.changed) {
		s.changed = t
	}
	return s
}

// Holds reports whether the content read when s was taken is certainly still the
// content. It returns false if the file had changed so shortly before s that
// another change might not show in its times.
func (s Stamp) Holds(now Stamp) bool {
	return s.info != nil && now.info != nil &&
		s.taken.Sub(s.changed) > settled &&
		s.changed.Equal(now.changed) && s.info.ModTime().Equal(now.info.ModTime()) &&
		s.info.Size() == now.info.Size() && os.SameFile(s.info, now.info)
}
