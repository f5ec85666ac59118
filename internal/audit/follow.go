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

// followEvery is how often [Follow] checks the log.
const followEvery = 200 * time.Millisecond

// Follow returns the entries of the log at path as [Read] does, and then those
// that are appended, until ctx is done. It follows the log across renames, and
// waits for a log that does not exist yet. Each time it has caught up it yields
// a Line without a File. It yields an unfinished line once the line is finished.
// If the log was truncated or removed, it yields a [*LineError] and continues
// from the beginning of what is there now.
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

// A follower is a position in a log. It keeps no file open between two checks,
// since some systems cannot rename an open file.
type follower struct {
	path   string
	at     fs.FileInfo // the file that was read last; nil before the first
	offset int64       // just past the last whole line
	number int         // of that line
}

// named is a file of the log and the name that it had when it was listed.
type named struct {
	name string
	fi   fs.FileInfo
}

// list returns the files of the log, oldest first. The error is errMoved if they
// were renamed meanwhile, and fs.ErrNotExist if there is no log.
func (f *follower) list() ([]named, error) {
	names, err := logFiles(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		// It may have been renamed after the other names were listed.
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
		return nil, errMoved // if the error lasts, the next check meets it again
	}
	return files, nil
}

// round yields everything that was not yet yielded. It reports whether the
// caller wants more.
func (f *follower) round(yield func(Line, error) bool) (more bool, err error) {
	files, err := f.list()
	switch {
	case errors.Is(err, errMoved):
		return true, nil // the next check finds its new name
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
			i = len(files) - 1 // earlier files were already yielded
		}
		files = files[i:]
	}
	for i, n := range files {
		// Only the last file may still grow.
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

// gone yields an error saying that the file read last no longer exists.
func (f *follower) gone(yield func(Line, error) bool) (more bool) {
	if f.at == nil {
		return true
	}
	f.at = nil
	return yield(Line{File: f.path, Number: f.number}, &LineError{f.path, f.number, errors.New("the file was removed while it was followed")})
}

// errMoved means that a name no longer belongs to the same file.
var errMoved = errors.New("renamed")

// read yields the lines of one file, starting at f's position. If the file is
// not the one that f was in, it starts at the beginning.
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
