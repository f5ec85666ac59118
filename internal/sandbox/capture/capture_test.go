package capture

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// The capture does not depend on how the bytes are split.
func TestBufferKeepsHeadAndTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		limit := 1 + rng.IntN(40)
		all := make([]byte, rng.IntN(200))
		for i := range all {
			all[i] = byte('a' + i%26)
		}
		b := buffer{limit: limit}
		for rest := all; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			if rng.IntN(2) == 0 {
				n = min(n, 3)
			}
			b.write(rest[:n])
			rest = rest[n:]
		}
		got := b.capture()
		head, tail := all, []byte(nil)
		if len(all) > limit {
			head, tail = all[:limit/2], all[len(all)-(limit-limit/2):]
		}
		if len(all) <= limit {
			if string(got.Bytes()) != string(all) || got.Truncated() {
				t.Fatalf("limit %d, %q: Bytes = %q", limit, all, got.Bytes())
			}
			continue
		}
		if string(got.Head) != string(head) || string(got.Tail) != string(tail) {
			t.Fatalf("limit %d, %q: kept %q and %q, want %q and %q", limit, all, got.Head, got.Tail, head, tail)
		}
		if got.Total != int64(len(all)) || got.Dropped != int64(len(all)-limit) {
			t.Fatalf("limit %d, %d bytes: Total, Dropped = %d, %d", limit, len(all), got.Total, got.Dropped)
		}
	}
}

func TestCaptureSplitsNoCharacter(t *testing.T) {
	for _, text := range []string{"ü", "€", "😀", "aü€😀"} {
		all := strings.Repeat(text, 50)
		for limit := 8; limit < 40; limit++ {
			b := buffer{limit: limit}
			b.write([]byte(all))
			c := b.capture()
			if !utf8.Valid(c.Head) || !utf8.Valid(c.Tail) {
				t.Errorf("limit %d: kept %q and %q of %q", limit, c.Head, c.Tail, text)
			}
			if c.Total != int64(len(all)) || c.Dropped != c.Total-int64(len(c.Head)+len(c.Tail)) {
				t.Errorf("limit %d: Total, Dropped = %d, %d", limit, c.Total, c.Dropped)
			}
		}
	}
	// Bytes that are not text are kept.
	b := buffer{limit: 20}
	b.write([]byte(strings.Repeat("\x80", 100)))
	if c := b.capture(); len(c.Head) != 10 || len(c.Tail) != 10 {
		t.Errorf("kept %d + %d bytes, want 10 + 10", len(c.Head), len(c.Tail))
	}
}

func TestCaptureBytes(t *testing.T) {
	tests := []struct {
		c    sandbox.Capture
		want string
	}{
		{sandbox.Capture{}, ""},
		{sandbox.Capture{Head: []byte("ab"), Tail: []byte("cd"), Total: 4}, "abcd"},
		{sandbox.Capture{Head: []byte("ab"), Tail: []byte("cd"), Total: 14, Dropped: 10}, "ab\n... [truncated 10 bytes] ...\ncd"},
	}
	for _, tt := range tests {
		if got := string(tt.c.Bytes()); got != tt.want {
			t.Errorf("%+v.Bytes() = %q, want %q", tt.c, got, tt.want)
		}
	}
}

func TestBufferIsBounded(t *testing.T) {
	b := buffer{limit: 1000}
	chunk := make([]byte, 333)
	for range 10_000 {
		b.write(chunk)
	}
	if n := cap(b.head) + cap(b.tail); n > 4000 {
		t.Errorf("the buffer holds %d bytes for a limit of 1000", n)
	}
}
