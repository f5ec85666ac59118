// Package packed encodes numbers and texts into one compact string without pointers.
// So records of thousands of packs cost the garbage collector nothing, are decoded only
// when needed, and have the same form in memory and in a file.
//
// Numbers are written with [binary.AppendUvarint], texts with [AppendText]. A
// [Reader] takes them from the text again.
package packed

import "encoding/binary"

// AppendText appends the length of a text, then the text.
func AppendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// AppendTexts appends the number of texts, then the texts.
func AppendTexts(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = AppendText(b, s)
	}
	return b
}

// A Reader decodes values from the head of a text, which may come from anywhere: no
// input makes it panic, or use more memory than a small multiple of the text. Texts
// that it returns share memory with that text. The zero Reader is at the end of a text.
type Reader struct {
	rest string
	bad  bool
}

// From returns a Reader of the whole text.
func From(text string) Reader { return Reader{rest: text} }

// Rest returns what was not read yet.
func (r *Reader) Rest() string { return r.rest }

// IsBad reports whether a value was missing or invalid. Everything read after it is
// empty.
func (r *Reader) IsBad() bool { return r.bad }

// IsDone reports whether all of the text was read, and everything was there.
func (r *Reader) IsDone() bool { return !r.bad && r.rest == "" }

// Fail marks the text as bad, for a value that has no meaning.
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

// Count reads a number of things that take at least one byte each.
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

// Within returns a Reader of the next n bytes and skips them.
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
