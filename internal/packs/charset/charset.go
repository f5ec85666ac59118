// Package charset detects the encoding of a text and converts it to UTF-8. Most
// documents are UTF-8; some that people wrote with older programs are UTF-16 or
// Latin-1.
//
// Valid UTF-8 is never taken for another encoding, and neither is data with bytes
// that no text has.
package charset

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// A Set is an encoding.
type Set string

// The encodings. The zero value is UTF-8; it also stands for anything that is not
// known to be another encoding.
const (
	UTF8    Set = ""
	UTF16LE Set = "UTF-16, little-endian"
	UTF16BE Set = "UTF-16, big-endian"
	Latin1  Set = "Latin-1" // decoded as Windows-1252, which is a superset
)

// Of returns the encoding of the text that begins with head, which may end inside a
// character. UTF-16 must begin with a byte order mark. A text is Latin-1 if none of
// its characters outside ASCII is valid UTF-8, and it has no byte that no text has.
func Of(head []byte) Set {
	if utf8.Valid(head) { // nearly all are; this looks at eight bytes at a time
		return UTF8
	}
	for _, set := range []Set{UTF16LE, UTF16BE} {
		if len(head) >= 2 && set.unit(head) == 0xfeff {
			for i := 0; i+2 <= len(head); i += 2 {
				if set.unit(head[i:]) == 0 {
					return UTF8 // a program, a picture
				}
			}
			return set
		}
	}
	found := false
	for i := 0; i < len(head); {
		c := head[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' || c == 0x7f {
				return UTF8 // not UTF-8 either, but not a text
			}
			i++
			continue
		}
		if r, n := utf8.DecodeRune(head[i:]); r != utf8.RuneError || n > 1 {
			return UTF8 // perhaps with a mistake somewhere
		}
		if !utf8.FullRune(head[i:]) {
			break // cut off
		}
		if c == 0xff || c < 0xa0 && above7f[c-0x80] == utf8.RuneError {
			return UTF8
		}
		found = true
		i++
	}
	if found {
		return Latin1
	}
	return UTF8
}

// above7f are the characters of Windows-1252 from 0x80 to 0x9f.
var above7f = [...]rune{ // never modified
	'€', utf8.RuneError, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', utf8.RuneError, 'Ž', utf8.RuneError,
	utf8.RuneError, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', utf8.RuneError, 'ž', 'Ÿ',
}

// Decode converts data, a part of a text in this encoding, to UTF-8; it returns UTF-8
// data itself. A byte order mark is kept. UTF-16 data must begin with a whole unit;
// half a unit at its end is dropped.
func (s Set) Decode(data []byte) []byte {
	switch s {
	case UTF16LE, UTF16BE:
		units := make([]uint16, len(data)/2)
		for i := range units {
			units[i] = s.unit(data[2*i:])
		}
		return []byte(string(utf16.Decode(units)))
	case Latin1:
		text := make([]byte, 0, len(data)+len(data)/8)
		for _, c := range data {
			r := rune(c)
			if 0x80 <= c && c < 0xa0 {
				r = above7f[c-0x80]
			}
			text = utf8.AppendRune(text, r)
		}
		return text
	}
	return data
}

func (s Set) unit(data []byte) uint16 {
	if s == UTF16BE {
		return binary.BigEndian.Uint16(data)
	}
	return binary.LittleEndian.Uint16(data)
}

// Size returns how many bytes a UTF-8 text takes in this encoding.
func (s Set) Size(text []byte) int {
	switch s {
	case UTF16LE, UTF16BE:
		n := 0
		for _, r := range string(text) {
			n += 2 * utf16.RuneLen(r)
		}
		return n
	case Latin1:
		return utf8.RuneCount(text)
	}
	return len(text)
}

// Cut returns where to cut data, which begins with a whole character and is longer
// than length: at length, or else at the end of the last whole character before it.
// It always keeps at least one character. It does not handle UTF-8.
func (s Set) Cut(data []byte, length int) int {
	if s == Latin1 {
		return max(length, 1)
	}
	end := max(length&^1, 2)
	if isHigh := end+2 <= len(data) && utf16.IsSurrogate(rune(s.unit(data[end-2:]))) && s.unit(data[end-2:]) < 0xdc00; isHigh {
		if end -= 2; end == 0 {
			end = 4 // both halves of the surrogate pair
		}
	}
	return min(end, len(data))
}

// Text converts a whole text to UTF-8, whatever its encoding.
func Text(all []byte) []byte { return Of(all).Decode(all) }
