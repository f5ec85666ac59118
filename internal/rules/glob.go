package rules

import "strings"

// anyNumber stands for any number of elements of an argv, including none.
const anyNumber = "**"

// glob reports whether pattern, in which "*" is any text, matches all of s. It
// reads each byte of s about once, whatever the pattern: it finds the parts
// between stars from left to right, and the first place for each is the best.
func glob(pattern, s string) bool {
	part, rest, star := strings.Cut(pattern, "*")
	if !star {
		return s == pattern
	}
	s, ok := strings.CutPrefix(s, part)
	if !ok {
		return false
	}
	for {
		part, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
}

// fixed reports whether a pattern has anything but stars.
func fixed(pattern string) bool { return strings.Trim(pattern, "*") != "" }
