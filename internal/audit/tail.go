package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxSearch bounds how far back readTail searches: two of the longest lines.
const maxSearch = 2 * maxLine

// A tail is the end of one file of the log.
type tail struct {
	found   bool  // there is an intact line
	last    link  // that line, if found
	end     int64 // where it ends, after its line feed if it has one; 0 if not found
	newline bool  // the file is empty or ends with a line feed
}

// readTail finds the last intact line among the first size bytes of f.
func readTail(f io.ReaderAt, size int64) (tail, error) {
	t := tail{newline: true}
	if size == 0 {
		return t, nil
	}
	for n := int64(64 << 10); ; n *= 2 {
		n = min(n, size, maxSearch)
		start := size - n
		buf := make([]byte, n)
		if _, err := f.ReadAt(buf, start); err != nil {
			return tail{}, err
		}
		t.newline = buf[len(buf)-1] == '\n'
		for end := len(buf); end > 0; {
			body := bytes.TrimSuffix(buf[:end], []byte("\n"))
			from := bytes.LastIndexByte(body, '\n') + 1
			if from == 0 && start > 0 {
				break // the line may begin before buf
			}
			if e, intact, _ := parse(body[from:]); intact {
				t.found, t.last, t.end = true, link{e.Seq, e.Hash, e.Prev}, start+int64(end)
				return t, nil
			}
			end = from
		}
		if start == 0 {
			return t, nil
		}
		if n == maxSearch {
			return tail{}, fmt.Errorf("no intact entry in the last %d MiB: move the file away, and keep it", maxSearch>>20)
		}
	}
}

// torn describes what follows the last intact line of f; nil if nothing does.
func (t tail) torn(f io.ReaderAt, size int64) (*Fragment, error) {
	if t.end == size {
		return nil, nil
	}
	n := size - t.end
	if t.newline {
		n--
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, t.end, n)); err != nil {
		return nil, err
	}
	return &Fragment{Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// A position is where the log can continue.
type position struct {
	size     int64     // of the current file
	last     link      // the last intact entry; the zero hash when there is none
	seq      int64     // the highest number ever used, even by an entry that was lost
	newline  bool      // the current file is empty or ends with a line feed
	recovery *Recovery // must be recorded before anything else; nil: nothing
	fresh    bool      // no log exists yet
}

// locate returns where the log at path can continue. f is its current file,
// which has size bytes. The caller holds the lock.
func locate(path string, f io.ReaderAt, size int64) (position, error) {
	older, err := rotated(path)
	if err != nil {
		return position{}, err
	}
	head, headErr := readHead(path)
	if headErr != nil && len(older) == 0 && size > 0 {
		// Nothing shows that this file is a log. If the path is wrong, that file
		// must not be written to.
		start := []byte(`{"seq":`)
		buf := make([]byte, min(int64(len(start)), size))
		if _, err := f.ReadAt(buf, 0); err != nil {
			return position{}, err
		}
		if !bytes.HasPrefix(start, buf) {
			return position{}, &UnsafeError{path, "is not an audit log", "choose another path"}
		}
	}

	t, err := readTail(f, size)
	if err != nil {
		return position{}, err
	}
	torn, err := t.torn(f, size)
	if err != nil {
		return position{}, err
	}
	pos := position{size: size, last: t.last, newline: t.newline}
	if !t.found {
		pos.last = link{hash: zeroHash}
		if len(older) > 0 {
			if pos.last, err = lastOf(older[len(older)-1]); err != nil {
				return position{}, err
			}
		}
	}
	pos.seq = pos.last.seq
	pos.fresh = size == 0 && len(older) == 0 && errors.Is(headErr, fs.ErrNotExist)

	r := Recovery{Torn: torn}
	switch {
	case pos.fresh:
	case headErr != nil:
		if u, ok := errors.AsType[*UnsafeError](headErr); ok {
			return position{}, u
		}
		r.Head = headLost
	case head.seq > pos.seq:
		r.Missing = head.seq - pos.seq
		pos.seq = head.seq // keep the number missing, so that Verify sees the gap
	case head.seq == pos.seq && head.hash != pos.last.hash,
		head.seq == pos.seq-1 && head.hash != pos.last.prev:
		r.Head = headDiffers
	}
	if r != (Recovery{}) {
		pos.recovery = &r
	}
	return pos, nil
}

// lastOf returns the last intact entry of the file at path.
func lastOf(path string) (link, error) {
	f, err := openSafe(path, os.O_RDONLY)
	if err != nil {
		return link{}, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return link{}, err
	}
	t, err := readTail(f, fi.Size())
	if err != nil {
		return link{}, fmt.Errorf("audit log %q: %w", path, err)
	}
	if !t.found {
		return link{hash: zeroHash}, nil
	}
	return t.last, nil
}
