package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"
)

// followEvery is how often a log that is followed is looked at.
const followEvery = 200 * time.Millisecond

// Follow returns the entries of the log at path as [Read] does, and then those
// that are appended, until ctx is done: across renames, and from the beginning
// of a log that is not there yet. Each time that nothing more is there, a Line
// without a File comes. An unfinished line comes when it is finished. A log
// that was cut off, or removed, is a [*LineError], after which what is there
// now follows from its beginning.
func Follow(ctx context.Context, path string) iter.Seq2[Line, error] {
	return follow(ctx, path, followEvery)
}

func follow(ctx context.Context, path string, every time.Duration) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		f := follower{path: path}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			more, err := f.round(yield)
			if err != nil {
				yield(Line{}, fmt.Errorf("following audit log %q: %w", path, err))
				return
			}
			if !more || !yield(Line{}, nil) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// A follower is a place in a log. It keeps no file open between two looks,
// since some systems do not rename a file that is open.
type follower struct {
	path   string
	at     fs.FileInfo // the file that was read last; nil before the first
	offset int64       // after the last whole line
	number int         // of that line
}

// named is a file of the log under the name that it had at one moment.
type named struct {
	name string
	fi   fs.FileInfo
}

// list returns the files of the log, oldest first. The error is errMoved when
// they were renamed meanwhile, and fs.ErrNotExist when there is no log.
func (f *follower) list() ([]named, error) {
	names, err := logFiles(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		// Perhaps it was renamed between a look at the other names and this one.
		if names, err = logFiles(f.path); err == nil {
			return nil, errMoved
		}
	}
	if err != nil {
		return nil, err
	}
	files := make([]named, len(names))
	for i, name := range names {
		fi, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errMoved
		}
		if err != nil {
			return nil, err
		}
		files[i] = named{name, fi}
	}
	if again, err := logFiles(f.path); err != nil || !slices.Equal(names, again) {
		return nil, errMoved // the next look meets the error again, if it lasts
	}
	return files, nil
}

// round yields what is there and was not yet yielded. It reports whether more
// is wanted.
func (f *follower) round(yield func(Line, error) bool) (more bool, err error) {
	files, err := f.list()
	switch {
	case errors.Is(err, errMoved):
		return true, nil // the next look finds where to
	case errors.Is(err, fs.ErrNotExist):
		return f.gone(yield), nil
	case err != nil:
		return false, err
	}
	if f.at != nil {
		i := slices.IndexFunc(files, func(n named) bool { return os.SameFile(n.fi, f.at) })
		if i < 0 {
			if !f.gone(yield) {
				return false, nil
			}
			i = len(files) - 1 // what was there before came already
		}
		files = files[i:]
	}
	for i, n := range files {
		// The last one may still be written to; the others are complete.
		more, err := f.read(n, i == len(files)-1, yield)
		if errors.Is(err, errMoved) {
			return true, nil
		}
		if !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// gone says that what was read last is not there any more.
func (f *follower) gone(yield func(Line, error) bool) (more bool) {
	if f.at == nil {
		return true
	}
	f.at = nil
	return yield(Line{File: f.path, Number: f.number}, &LineError{f.path, f.number, errors.New("the file was removed while it was followed")})
}

// errMoved says that a name is not that of the file any more.
var errMoved = errors.New("renamed")

// read yields the lines of one file from where f is. A file other than the one
// that f was in is read from its beginning.
func (f *follower) read(n named, growing bool, yield func(Line, error) bool) (more bool, err error) {
	name := n.name
	file, err := openRead(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, errMoved
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		return false, err
	}
	if !os.SameFile(fi, n.fi) {
		return false, errMoved
	}
	if f.at == nil || !os.SameFile(fi, f.at) {
		f.at, f.offset, f.number = fi, 0, 0
	}
	if fi.Size() < f.offset {
		cut := &LineError{name, f.number, errors.New("the file was cut off while it was followed")}
		f.offset, f.number = 0, 0
		if !yield(Line{File: name, Number: cut.Line}, cut) {
			return false, nil
		}
	}
	rest := io.NewSectionReader(file, f.offset, fi.Size()-f.offset)
	for raw, err := range readLines(rest, name) {
		if err != nil {
			return false, err
		}
		if growing && !raw.newline {
			return true, nil
		}
		f.number++
		f.offset += raw.size
		if raw.newline {
			f.offset++
		}
		raw.number = f.number
		if !yield(raw.entry(name)) {
			return false, nil
		}
	}
	return true, nil
}
