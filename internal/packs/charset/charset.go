// Package charset tells in which encoding a text is, and makes UTF-8 of it: most
// documents are UTF-8, and some of those that people have made with older programs
// are UTF-16 or Latin-1.
//
// It guesses nothing about what is UTF-8, and takes nothing for a text that has
// bytes which no text has.
package charset

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// A Set is an encoding.
type Set string

// The encodings. The zero value is UTF-8, and whatever is not known to be another.
const (
	UTF8    Set = ""
	UTF16LE Set = "UTF-16, little-endian"
	UTF16BE Set = "UTF-16, big-endian"
	Latin1  Set = "Latin-1" // Windows-1252, which has more characters
)

// Of returns the encoding of the text that begins with head, which may end inside a
// character. UTF-16 has a byte order mark. Latin-1 is what is not UTF-8 anywhere
// outside of ASCII, and has no byte that no text has.
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
				return UTF8 // which it is not, either
			}
			i++
			continue
		}
		if r, n := utf8.DecodeRune(head[i:]); r != utf8.RuneError || n > 1 {
			return UTF8 // with a mistake somewhere, perhaps
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

// Decode returns data, a part of a text in this encoding, in UTF-8; of UTF-8, data
// itself. A byte order mark stays. Of UTF-16, data begins with a whole unit, and half
// a unit at its end is left out.
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

// Size returns how many bytes a text in UTF-8 has in this encoding.
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
// than length: at length, or where the last whole character before it ends, or after
// the first when there is no room for it. It is not for UTF-8.
func (s Set) Cut(data []byte, length int) int {
	if s == Latin1 {
		return max(length, 1)
	}
	end := max(length&^1, 2)
	if isHigh := end+2 <= len(data) && utf16.IsSurrogate(rune(s.unit(data[end-2:]))) && s.unit(data[end-2:]) < 0xdc00; isHigh {
		if end -= 2; end == 0 {
			end = 4 // both halves
		}
	}
	return min(end, len(data))
}

// Text returns all of a text in UTF-8, whatever its encoding is.
func Text(all []byte) []byte { return Of(all).Decode(all) }
