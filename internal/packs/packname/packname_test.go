package packname

import (
	"strings"
	"testing"
)

func TestSegment(t *testing.T) {
	for name, want := range map[string]string{
		"acme": "acme", "Acme_2.0-x": "acme_2.0-x", "größe": "größe", "gro\u0308\u00dfe": "größe", "日本語": "日本語", "٣": "٣",
		"Z\u0321\u0348\u0312\u033f\u0353a\u0347\u0308\u0301l": "zal", // stacked marks
		"a b": "a-b", "a+b": "a-b", "a:b": "a-b", "a\\b": "a-b", "a\u202eb": "a-b", "a\u200bb": "a-b", "a\nb": "a-b",
		"\u3164": "pack", "a\u115fb": "a-b", // invisible letters
		"\U0001f600": "pack", "\xff\xfe": "pack", "": "",
	} {
		if got := segment(name); got != want {
			t.Errorf("segment(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSlug(t *testing.T) {
	tests := map[string]string{
		"a": "a", "A b": "a-b", "--a--b--": "a-b", "": "", "日本": "", "ÀÉî": "aei", "x_y.z": "x-y-z", "ﬁle①": "file1",
		strings.Repeat("a", 70): strings.Repeat("a", 64), strings.Repeat("ab ", 40): strings.Repeat("ab-", 21) + "a",
	}
	for in, want := range tests {
		got := Slug(in)
		if got != want || got != "" && !IsValid(got) {
			t.Errorf("Slug(%q) = %q, want %q", in, got, want)
		}
	}
	for _, bad := range []string{"", "-a", "a-", "a--b", "A", "a_b", "ä", strings.Repeat("a", 65)} {
		if IsValid(bad) {
			t.Errorf("IsValid(%q) = true, want false", bad)
		}
	}
}
