package queue

import (
	"crypto/rand"
	"strings"
)

// codeAlphabet leaves out letters and digits that look or sound like others.
const codeAlphabet = "23456789ABCDEFGHJKMNPQRSTVWXYZ"

// newCode returns eight characters with a dash in the middle: 39 bits. A code is
// useful only to somebody with access to the page or the terminal.
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

// canonicalCode returns a code as it was made, given what a person typed.
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
