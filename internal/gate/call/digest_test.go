package call

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
)

// Grants on disk hold digests of earlier versions, so the digested bytes must stay
// the same.
func TestSumBytes(t *testing.T) {
	want := sha256.New()
	got := newSum("test")
	io.WriteString(want, "packs-mcp 1\n4:test\n")
	got.add("none")
	io.WriteString(want, "none 0\n")
	long := strings.Repeat("x", 1000)
	got.add("some", "", "a\nb", long)
	fmt.Fprintf(want, "some 3\n0:\n3:a\nb\n1000:%s\n", long)
	if sum := hex.EncodeToString(want.Sum(nil)); got.String() != sum {
		t.Errorf("the digest is %s, want %s", got, sum)
	}
}
