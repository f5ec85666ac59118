package safetext

import "iter"

// Escaped returns the offsets of the characters of s that [Text] would change,
// in order, each with a [Report] in which that character alone is counted. A
// byte order mark at the start of s is among them; the carriage return of a CR
// LF pair is not.
func Escaped(s string) iter.Seq2[int, Report] {
	return func(yield func(int, Report) bool) {
		var w walker
		for at := 0; at < len(s); {
			_, size, c := w.next(s[at:])
			var is Report
			is.count(c)
			if is != (Report{}) && !yield(at, is) {
				return
			}
			at += size
		}
	}
}
