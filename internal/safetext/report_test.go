package safetext

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInspect(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Report
		str  string
	}{
		{"", Report{}, "no invisible characters"},
		{"# Title\r\n\r\n\ttext ✅ été\n", Report{}, "no invisible characters"},
		{"\ufeff# Title\n", Report{}, "no invisible characters"},
		{"\ufeff\ufeff# Title\ufeff", Report{Invisible: 2}, "2 invisible characters"},
		{"a\u200bb", Report{Invisible: 1}, "1 invisible character"},
		{"\U000e0041\U000e0042\u202e", Report{Tags: 2, Bidi: 1}, "3 invisible characters (2 tag, 1 bidirectional)"},
		{"\U000e0041\u2066\x1b\u2029\u3164\u00a0a\u0301\u0301\u0301\u0301\xff\u00ad\ue000\u0378",
			Report{Control: 2, Bidi: 1, Invisible: 3, Tags: 1, Blank: 2, Marks: 1, Invalid: 1},
			"11 invisible characters (1 tag, 1 bidirectional, 2 control, 2 blank, 1 stacked mark, 1 not UTF-8, 3 other)"},
		{"1\ufe0f\u20e3❤\ufe0f", Report{}, "no invisible characters"},
		{"€"[:2], Report{Invalid: 2}, "2 invisible characters (2 not UTF-8)"},
	} {
		got := Inspect([]byte(tt.in))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Inspect(%+q) mismatch (-want +got):\n%s", tt.in, diff)
		}
		if got.String() != tt.str {
			t.Errorf("Inspect(%+q).String() = %q, want %q", tt.in, got, tt.str)
		}
	}
}
