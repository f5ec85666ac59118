package private

import (
	"io/fs"
	"os"
	"time"
)

// settled is how long after its last change a file's times tell any further
// change: twice what the coarsest clocks of file systems count in.
const settled = 4 * time.Second

// A Stamp is how a file looked at some moment, to see later whether it has to
// be read again. The zero Stamp is of no file.
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

// Holds reports whether what was read when s was taken is surely what is there
// now. It says no about a file that had changed so shortly before s that one
// more change need not show in its times.
func (s Stamp) Holds(now Stamp) bool {
	return s.info != nil && now.info != nil &&
		s.taken.Sub(s.changed) > settled &&
		s.changed.Equal(now.changed) && s.info.ModTime().Equal(now.info.ModTime()) &&
		s.info.Size() == now.info.Size() && os.SameFile(s.info, now.info)
}
