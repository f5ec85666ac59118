// Package packed has numbers and texts one behind the other in one text, with
// hardly a byte between them and without a pointer: what is remembered of
// thousands of packs is neither searched by a garbage collection nor taken apart
// before it is needed, and is the same in memory and in a file.
//
// Numbers are written with [binary.AppendUvarint], texts with [AppendText]. A
// [Reader] takes them from the text again.
package packed

import "encoding/binary"

// AppendText appends a text behind its length.
func AppendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// AppendTexts appends texts behind how many there are.
func AppendTexts(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = AppendText(b, s)
	}
	return b
}

// A Reader takes values from the head of a text, which may be anybody's: nothing
// makes it panic, or take more memory than some times the bytes there are. Texts
// that it returns are parts of that text. The zero Reader is at the end of one.
type Reader struct {
	rest string
	bad  bool
}

// From returns a Reader of the whole text.
func From(text string) Reader { return Reader{rest: text} }

// Rest is what was not read yet.
func (r *Reader) Rest() string { return r.rest }

// IsBad reports whether a value was not there. All that is read after it is empty.
func (r *Reader) IsBad() bool { return r.bad }

// IsDone reports whether all of the text was read, and everything was there.
func (r *Reader) IsDone() bool { return !r.bad && r.rest == "" }

// Fail has the text be bad, for a value that means nothing.
func (r *Reader) Fail() { r.bad, r.rest = true, "" }

// Number is an unsigned number.
func (r *Reader) Number() uint64 {
	var v uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		v |= uint64(r.rest[i]&0x7f) << (7 * i)
		if r.rest[i] < 0x80 {
			r.rest = r.rest[i+1:]
			return v
		}
	}
	r.Fail()
	return 0
}

// Signed is a number that [binary.AppendVarint] wrote.
func (r *Reader) Signed() int64 {
	v := r.Number()
	return int64(v>>1) ^ -int64(v&1)
}

// Count is a number of things of which each has at least one byte.
func (r *Reader) Count() int {
	n := r.Number()
	if n > uint64(len(r.rest)) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Bytes are the next n.
func (r *Reader) Bytes(n int) string {
	if n < 0 || n > len(r.rest) {
		r.Fail()
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// Within returns a Reader of the next n bytes, which are read with that.
func (r *Reader) Within(n int) Reader {
	text := r.Bytes(n)
	return Reader{rest: text, bad: r.bad}
}

// Fixed is a number of n bytes, the lowest first; n is at most 8.
func (r *Reader) Fixed(n int) (v uint64) {
	s := r.Bytes(n)
	for i := range len(s) {
		v |= uint64(s[i]) << (8 * i)
	}
	return v
}

// Text is what [AppendText] wrote.
func (r *Reader) Text() string { return r.Bytes(r.Count()) }

// Texts are what [AppendTexts] wrote; nil when there are none.
func (r *Reader) Texts() []string {
	n := r.Count()
	if n == 0 {
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = r.Text()
	}
	return all
}
