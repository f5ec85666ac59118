package packed_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
)

func Example() {
	var b []byte
	b = binary.AppendUvarint(b, 10_000)
	b = packed.AppendText(b, "commit")
	b = packed.AppendTexts(b, []string{"git", "history"})
	fmt.Println(len(b), "bytes")

	r := packed.From(string(b))
	fmt.Println(r.Number(), r.Text(), r.Texts(), r.IsDone())
	// Output:
	// 22 bytes
	// 10000 commit [git history] true
}

func TestReader(t *testing.T) {
	var b []byte
	numbers := []uint64{0, 1, 127, 128, 1 << 20, math.MaxInt64, math.MaxUint64}
	signed := []int64{0, -1, 1, math.MinInt64, math.MaxInt64}
	texts := []string{"", "a", strings.Repeat("é", 200), "\x00\xff"}
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	for _, n := range signed {
		b = binary.AppendVarint(b, n)
	}
	for _, s := range texts {
		b = packed.AppendText(b, s)
	}
	b = packed.AppendTexts(b, texts)
	b = packed.AppendTexts(b, nil)
	b = binary.LittleEndian.AppendUint32(b, 0xdeadbeef)
	b = append(b, "rest"...)

	// values reads all of it, and reports whether that is what was written.
	values := func(r *packed.Reader) bool {
		same := true
		for _, n := range numbers {
			same = r.Number() == n && same
		}
		for _, n := range signed {
			same = r.Signed() == n && same
		}
		for _, s := range texts {
			same = r.Text() == s && same
		}
		same = slices.Equal(r.Texts(), texts) && same
		same = r.Texts() == nil && same
		return r.Fixed(4) == 0xdeadbeef && same
	}
	r := packed.From(string(b))
	if !values(&r) || r.IsBad() || r.IsDone() || r.Rest() != "rest" || r.Bytes(4) != "rest" || !r.IsDone() {
		t.Errorf("what was written is not what is read; %q is left", r.Rest())
	}
	for n := range len(b) - len("rest") {
		r := packed.From(string(b[:n]))
		if values(&r); !r.IsBad() || r.Rest() != "" || r.IsDone() {
			t.Errorf("of %d bytes of %d, all values are read, and %q is left", n, len(b), r.Rest())
		}
		if r.Number() != 0 || r.Text() != "" || r.Texts() != nil || r.Fixed(8) != 0 || r.Bytes(0) != "" {
			t.Errorf("of %d bytes, something is read behind the end", n)
		}
	}
}

func TestReaderOfNonsense(t *testing.T) {
	for _, c := range []struct {
		name, text string
		read       func(r *packed.Reader)
	}{
		{"a number without an end", strings.Repeat("\xff", 11), func(r *packed.Reader) { r.Number() }},
		{"a number that is cut off", "\xff", func(r *packed.Reader) { r.Number() }},
		{"a text longer than the rest", "\x04abc", func(r *packed.Reader) { r.Text() }},
		{"a text of more bytes than there can be", strings.Repeat("\xff", 9) + "\x01abc", func(r *packed.Reader) { r.Text() }},
		{"more texts than there can be", strings.Repeat("\xff", 9) + "\x01abc", func(r *packed.Reader) { r.Texts() }},
		{"a negative number of bytes", "abc", func(r *packed.Reader) { r.Bytes(-1) }},
		{"more bytes than the rest", "abc", func(r *packed.Reader) { r.Fixed(4) }},
		{"what means nothing", "abc", func(r *packed.Reader) { r.Fail() }},
	} {
		r := packed.From(c.text)
		if c.read(&r); !r.IsBad() || r.Rest() != "" || r.IsDone() {
			t.Errorf("%s is read, and %q is left", c.name, r.Rest())
		}
	}
}
