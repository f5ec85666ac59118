package prompt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", []string{""}},
		{"short", []string{"short"}},
		{"0123456789", []string{"0123456789"}},
		{"0123456789a", []string{"0123456789", "a"}},
		{"a word or two and more", []string{"a word or ", "two and ", "more"}},
		{"ab 0123456789", []string{"ab 0123456", "789"}}, // no space near the end
		{"能力包能力包", []string{"能力包能力", "包"}},
		{"012345678e\u0301\u0302x", []string{"012345678e\u0301\u0302", "x"}},
	} {
		got := wrap(c.in, 10, 8)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("wrap(%q) differs (-want +got):\n%s", c.in, diff)
		}
		if joined := strings.Join(got, ""); joined != c.in {
			t.Errorf("wrap(%q) = %q, which together is not the same", c.in, got)
		}
	}
}
