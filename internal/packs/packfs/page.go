package packfs

import (
	"crypto/sha256"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/filetype"
)

// Limits bound one read. A zero field means its default.
type Limits struct {
	Page    int64 // default length of a page; 10,000 bytes
	PageMax int64 // maximum length of a page; 1 MiB
	File    int64 // largest file; 64 MiB
}

func (l Limits) withDefaults() Limits {
	if l.Page <= 0 {
		l.Page = 10_000
	}
	if l.PageMax <= 0 {
		l.PageMax = 1 << 20
	}
	if l.File <= 0 {
		l.File = 64 << 20
	}
	l.Page = min(l.Page, l.PageMax)
	return l
}

// A Page is a part of a file, byte for byte. The Data of all pages, each read at the
// NextOffset of the one before, joined, equals the file.
type Page struct {
	Path       string // cleaned, with slashes
	Data       []byte
	Size       int64 // of the whole file
	Offset     int64 // of Data[0]
	NextOffset int64 // where the next page begins; 0 for the last
	Truncated  bool  // there is a next page
	// UTF8 reports whether Data may be sent as text: the first 8 KiB of the file and this
	// page must be valid UTF-8 without NUL. So a binary file never has a page of text. A
	// text file may have a page that is not text: one with an invalid byte, or one that
	// begins inside a character because the caller asked for that offset.
	UTF8 bool
	// Charset is the encoding of text that is not UTF-8; see [Page.Text].
	Charset  charset.Set
	MIME     string // without parameters
	Verified bool   // the whole page belongs to a file with a given digest; see [Dir.ReadVerified]
}

// sniffLen is how many bytes of a file determine its type, and whether it is text.
const sniffLen = 8 << 10

// Read returns the page of the file that begins at offset and is at most length bytes long
// (0: the default of limits). A page of text ends with a whole character, and is up to
// three bytes longer if length has no room for even one. A page before the end of the file
// is never empty.
func (d *Dir) Read(name string, offset, length int64, limits Limits) (*Page, error) {
	limits = limits.withDefaults()
	length, err := limits.length(name, offset, length)
	if err != nil {
		return nil, err
	}
	f, info, err := d.file(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := info.Size()
	switch {
	case size > limits.File:
		return nil, &PathError{name, &TooLargeError{Size: size, Limit: limits.File}}
	case offset > size:
		return nil, &PathError{name, ErrOffset}
	}

	head, err := readAt(f, 0, min(sniffLen, size))
	if err != nil {
		return nil, &PathError{name, reason(err)}
	}
	data, err := readAt(f, offset, min(length+utf8.UTFMax-1, size-offset))
	if err != nil {
		return nil, &PathError{name, reason(err)}
	}
	if offset < size && len(data) == 0 {
		return nil, &PathError{name, ErrChanged}
	}
	return pageOf(name, head, data, size, offset, length), nil
}

// ReadVerified is [Dir.Read] for a file whose SHA-256 is want ("sha256:" and 64
// hexadecimal digits). It reads the whole file once, and every byte of the page is one that
// was hashed. It fails with [ErrChanged] if the digest differs, even if the offset is also
// past the end.
func (d *Dir) ReadVerified(name string, offset, length int64, limits Limits, want string) (*Page, error) {
	limits = limits.withDefaults()
	length, err := limits.length(name, offset, length)
	if err != nil {
		return nil, err
	}
	f, info, err := d.file(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limits.File {
		return nil, &PathError{name, &TooLargeError{Size: info.Size(), Limit: limits.File}}
	}

	hash := sha256.New()
	head := window{room: sniffLen}
	data := window{skip: offset, room: length + utf8.UTFMax - 1}
	size, err := io.Copy(io.MultiWriter(hash, &head, &data), io.LimitReader(f, limits.File+1))
	switch {
	case err != nil:
		return nil, &PathError{name, reason(err)}
	case size > limits.File:
		return nil, &PathError{name, &TooLargeError{Size: size, Limit: limits.File}}
	case text(hash.Sum(nil)) != want:
		return nil, &PathError{name, ErrChanged}
	case offset > size:
		return nil, &PathError{name, ErrOffset}
	}
	page := pageOf(name, head.data, data.data, size, offset, length)
	page.Verified = true
	return page, nil
}

// PageOf returns the page that [Dir.ReadVerified] would return for the file at path, which
// has slashes and is clean. data is the whole file, as from [Tree.Kept]; the Page shares
// its memory.
func PageOf(path string, data []byte, offset, length int64, limits Limits) (*Page, error) {
	limits = limits.withDefaults()
	length, err := limits.length(path, offset, length)
	if err != nil {
		return nil, err
	}
	size := int64(len(data))
	switch {
	case size > limits.File:
		return nil, &PathError{path, &TooLargeError{Size: size, Limit: limits.File}}
	case offset > size:
		return nil, &PathError{path, ErrOffset}
	}
	page := pageOf(path, data[:min(sniffLen, size)], data[offset:min(offset+length+utf8.UTFMax-1, size)], size, offset, length)
	page.Verified = true
	return page, nil
}

// A window keeps a part of what is written to it.
type window struct {
	skip, room int64 // bytes to skip, then bytes to keep
	data       []byte
}

func (w *window) Write(p []byte) (int, error) {
	n := len(p)
	left := min(w.skip, int64(n))
	w.skip -= left
	p = p[left:]
	p = p[:min(w.room, int64(len(p)))]
	w.room -= int64(len(p))
	w.data = append(w.data, p...)
	return n, nil
}

// length returns the actual length of a page for a requested length.
func (l Limits) length(name string, offset, length int64) (int64, error) {
	if offset < 0 || length < 0 {
		return 0, &PathError{name, ErrOffset}
	}
	if length == 0 {
		length = l.Page
	}
	return min(length, l.PageMax), nil
}

// pageOf returns a page of a file of that size. head is the file's first sniffLen bytes.
// data is the content at offset, up to three bytes longer than length.
func pageOf(name string, head, data []byte, size, offset, length int64) *Page {
	text := filetype.IsText(head, int64(len(head)) < size)
	set := charset.UTF8
	if !text {
		if set = charset.Of(head); set != charset.Latin1 && offset%2 != 0 {
			set = charset.UTF8 // the caller asked for part of a character
		}
	}
	if int64(len(data)) > length {
		if set == charset.UTF8 {
			data = data[:cut(data, int(length), text)]
		} else {
			data = data[:set.Cut(data, int(length))]
		}
	}

	clean, _ := Clean(name) // name was valid when the file was opened
	page := &Page{
		Path: clean, Data: data, Size: size, Offset: offset,
		UTF8: text && filetype.IsText(data, false), MIME: filetype.Of(clean, head, text || set != charset.UTF8), Charset: set,
	}
	if next := offset + int64(len(data)); next < size {
		page.NextOffset, page.Truncated = next, true
	}
	return page
}

// Text returns the page as UTF-8, and reports whether it is text at all.
func (p *Page) Text() (text []byte, ok bool) {
	return p.Charset.Decode(p.Data), p.UTF8 || p.Charset != charset.UTF8
}

func readAt(r io.ReaderAt, offset, n int64) ([]byte, error) {
	data := make([]byte, n)
	got, err := r.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:got], nil
}

// cut returns where to cut data that is longer than length. That is at length; but in text,
// at the end of the last whole character before it, or after the first character if there
// is none.
func cut(data []byte, length int, text bool) int {
	if !text {
		return length
	}
	for back := 0; back < utf8.UTFMax && length-back > 0; back++ {
		if utf8.RuneStart(data[length-back]) {
			return length - back
		}
	}
	if r, n := utf8.DecodeRune(data); r != utf8.RuneError || n > 1 {
		return max(n, 1)
	}
	return length
}
