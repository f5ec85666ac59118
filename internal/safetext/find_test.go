package safetext

import (
	"strings"
	"testing"
)

func TestEscaped(t *testing.T) {
	for _, s := range []string{"", "plain\r\n\ttext", "a\u200bb\u202ec", "\ufeffx", "\xff\xfe", "1\ufe0f\u20e3", "e\u0301\u0301\u0301\u0301\u0301", "\x1b[2J\u3164\U000e0041"} {
		var sum Report
		first := len(s)
		for at, is := range Escaped(s) {
			if is.Total() != 1 {
				t.Errorf("Escaped(%q): %+v at %d, want one character", s, is, at)
			}
			first = min(first, at)
			sum.Control += is.Control
			sum.Bidi += is.Bidi
			sum.Invisible += is.Invisible
			sum.Tags += is.Tags
			sum.Blank += is.Blank
			sum.Marks += is.Marks
			sum.Invalid += is.Invalid
		}
		if before := strings.ReplaceAll(s[:first], "\r\n", "\n"); Text(before) != before {
			t.Errorf("Escaped(%q) leaves out something before %d", s, first)
		}
		if want := Inspect([]byte(s)); sum != want && !strings.HasPrefix(s, "\ufeff") {
			t.Errorf("Escaped(%q) counts %+v, want %+v", s, sum, want)
		}
	}
	for range Escaped("\u200b\u200b") {
		break // breaking must end the iteration
	}
}
