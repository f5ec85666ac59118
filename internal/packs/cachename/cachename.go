// Package cachename holds the rule for names of caches. All tool formats share it.
package cachename

import (
	"slices"
	"strings"
)

// max is how many characters a name may have.
const max = 64

// Want says what a name has to be.
const Want = "a name of at most 64 letters, digits, -, _ and ., which begins with a letter or digit, does not end with a . and is not a device of Windows"

// Valid reports whether a cache can have this name. The name appears in questions and
// in the log. It is never used as a file name here, but a pack's own script may use it
// as one, so names that Windows forbids are refused too.
func Valid(name string) bool {
	if name == "" || len(name) > max || strings.HasSuffix(name, ".") || !isAlnum(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlnum(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	if slices.Contains([]string{"CON", "PRN", "AUX", "NUL"}, base) {
		return false
	}
	port := strings.TrimPrefix(strings.TrimPrefix(base, "COM"), "LPT")
	return len(port) != 1 || len(base) != 4 || port[0] < '0' || port[0] > '9'
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
