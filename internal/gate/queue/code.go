package queue

import (
	"crypto/rand"
	"strings"
)

// codeAlphabet has no letters or digits that are read or heard as others.
const codeAlphabet = "23456789ABCDEFGHJKMNPQRSTVWXYZ"

// newCode returns eight characters with a dash in the middle: 39 bits, which
// are worth something only to somebody whom the page or the terminal lets in.
func newCode() string {
	var b strings.Builder
	for b.Len() < 9 {
		if b.Len() == 4 {
			b.WriteByte('-')
		}
		var random [1]byte
		_, _ = rand.Read(random[:]) // never fails
		if n := int(random[0]); n < 256/len(codeAlphabet)*len(codeAlphabet) {
			b.WriteByte(codeAlphabet[n%len(codeAlphabet)])
		}
	}
	return b.String()
}

// canonicalCode is a code as it was made, from what a person typed.
func canonicalCode(typed string) string {
	code := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(strings.TrimSpace(typed)))
	if len(code) != 8 {
		return strings.ToUpper(strings.TrimSpace(typed))
	}
	return code[:4] + "-" + code[4:]
}
