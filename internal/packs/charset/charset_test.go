package charset

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func utf16Of(text string, big bool) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		high, low := byte(u>>8), byte(u)
		if big {
			high, low = low, high
		}
		b.WriteByte(low)
		b.WriteByte(high)
	}
	return b.String()
}

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		data string
		want Set
		text string
	}{
		{"", UTF8, ""},
		{"plain\r\n\ttext", UTF8, "plain\r\n\ttext"},
		{"größe 🧠", UTF8, "größe 🧠"},
		{"gr\xf6\xdfe", Latin1, "größe"},
		{"\x93quoted\x94 \x80 5", Latin1, "“quoted” € 5"},
		{utf16Of("größe 🧠", false), UTF16LE, "\ufeffgröße 🧠"},
		{utf16Of("größe 🧠", true), UTF16BE, "\ufeffgröße 🧠"},
		{"\xff\xfe\x00\x00\x10\x20", UTF8, "\xff\xfe\x00\x00\x10\x20"},
		{"größe with a wrong byte \xe9", UTF8, "größe with a wrong byte \xe9"}, // mostly UTF-8
		{"no byte of a text \xff", UTF8, "no byte of a text \xff"},
		{"no byte of a text \x81", UTF8, "no byte of a text \x81"},
		{"a program \x7fELF\x00\xe9", UTF8, "a program \x7fELF\x00\xe9"},
		{"cut off \xc3", UTF8, "cut off \xc3"},
		{"cut off \xf0\x9f\xa7", UTF8, "cut off \xf0\x9f\xa7"},
		{"caf\xe9 cut off \xc3", Latin1, "café cut off Ã"},
	} {
		if got := Of([]byte(tc.data)); got != tc.want {
			t.Errorf("Of(%q) = %q, want %q", tc.data, got, tc.want)
			continue
		}
		if got := string(Text([]byte(tc.data))); got != tc.text {
			t.Errorf("Text(%q) = %q, want %q", tc.data, got, tc.text)
		}
	}
}

// Parts of a text, cut where Cut says, are the text; and what they take in the file
// is what Size says.
func FuzzParts(f *testing.F) {
	f.Add("größe 🧠🧠 x", 3, true)
	f.Add("caf\u00e9", 1, false)
	f.Fuzz(func(t *testing.T, text string, length int, big bool) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || length < 0 || length > 1000 {
			return
		}
		data := []byte(utf16Of(text, big))
		set := Of(data)
		var got strings.Builder
		for len(data) > 0 {
			n := len(data)
			if n > length {
				n = set.Cut(data, length)
			}
			if n < 1 || n > len(data) || n > max(length, 4) {
				t.Fatalf("Cut(%q, %d) = %d", data, length, n)
			}
			part := set.Decode(data[:n])
			if size := set.Size(part); size != n {
				t.Fatalf("Size(%q) = %d, want %d", part, size, n)
			}
			got.Write(part)
			data = data[n:]
		}
		if got.String() != "\ufeff"+text {
			t.Errorf("parts of %q are %q", text, got.String())
		}
	})
}
