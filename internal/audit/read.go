package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
)

// Line is an entry and its position.
type Line struct {
	File   string
	Number int // from 1
	Entry  Entry
}

// LineError reports a line that is not an entry: it was damaged, or torn by a
// crash.
type LineError struct {
	File string
	Line int
	Err  error
}

func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: not an audit entry: %v", e.File, e.Line, e.Err)
}

func (e *LineError) Unwrap() error { return e.Err }

// Read returns the entries of the log at path, from the oldest renamed file to
// the end of the current one. For a line that is not an entry it yields a
// [*LineError] and goes on with the next line; any other error is the last thing
// that it yields. Read does not judge: it returns a changed entry as it is; see
// [Verify].
func Read(path string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		files, err := logFiles(path)
		if err != nil {
			yield(Line{}, fmt.Errorf("reading audit log %q: %w", path, err))
			return
		}
		for i := 0; i < len(files); i++ {
			name := files[i]
			f, err := openRead(name)
			if errors.Is(err, fs.ErrNotExist) && name == path {
				// It was renamed meanwhile, and is now the first of the
				// remaining files.
				if now, err := logFiles(path); err == nil && len(now) > i && now[i] != name {
					files = append(files[:i:i], now[i:]...)
					i--
					continue
				}
			}
			if err != nil {
				yield(Line{File: name}, fmt.Errorf("reading audit log %q: %w", name, err))
				return
			}
			more := yieldLines(f, name, yield)
			f.Close() // only read from
			if !more {
				return
			}
		}
	}
}

func yieldLines(r io.Reader, name string, yield func(Line, error) bool) (more bool) {
	for raw, err := range readLines(r, name) {
		if err != nil {
			yield(Line{File: name, Number: raw.number}, fmt.Errorf("reading audit log %q: %w", name, err))
			return false
		}
		if !yield(raw.entry(name)) {
			return false
		}
	}
	return true
}

// logFiles returns the renamed files and the current one, as far as they exist.
// It returns an error if none exists.
func logFiles(path string) ([]string, error) {
	files, err := rotated(path)
	if err != nil {
		return nil, err
	}
	switch _, err := os.Stat(path); {
	case err == nil:
		files = append(files, path)
	case !errors.Is(err, fs.ErrNotExist) || len(files) == 0:
		return nil, err
	}
	return files, nil
}

// openRead opens a file of the log for reading. Its owner does not matter: anyone
// can read and verify a copy of a log.
func openRead(path string) (*os.File, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return os.Open(path)
}

// A rawLine is a line without its line feed.
type rawLine struct {
	text    []byte // at most maxLine bytes; valid until the next line is read
	number  int    // from 1
	size    int64  // of the whole line
	newline bool   // it had a line feed
}

func (l rawLine) tooLong() error {
	if l.size > maxLine {
		return fmt.Errorf("the line has %d bytes, the limit is %d", l.size, maxLine)
	}
	return nil
}

// entry reads the line as an entry of the file called name; the error is a
// [*LineError].
func (l rawLine) entry(name string) (Line, error) {
	at := Line{File: name, Number: l.number}
	err := l.tooLong()
	if err == nil {
		err = json.Unmarshal(l.text, &at.Entry)
	}
	if err != nil {
		at.Entry = Entry{}
		return at, &LineError{name, l.number, err}
	}
	return at, nil
}

// readLines returns the lines of r. Errors name it.
func readLines(r io.Reader, name string) iter.Seq2[rawLine, error] {
	return func(yield func(rawLine, error) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		var long []byte // of a line that does not fit br's buffer
		for number := 1; ; number++ {
			line := rawLine{number: number}
			long = long[:0]
			for {
				part, err := br.ReadSlice('\n')
				part, line.newline = bytes.CutSuffix(part, []byte("\n"))
				line.size += int64(len(part))
				if len(long) == 0 && err == nil {
					line.text = part
				} else {
					long = append(long, part[:min(len(part), maxLine-len(long))]...)
					line.text = long
				}
				if err == nil || errors.Is(err, io.EOF) {
					break
				}
				if !errors.Is(err, bufio.ErrBufferFull) {
					yield(rawLine{number: number}, fmt.Errorf("line %d of %s: %w", number, name, err))
					return
				}
			}
			if !line.newline && line.size == 0 {
				return
			}
			if !yield(line, nil) || !line.newline {
				return
			}
		}
	}
}
