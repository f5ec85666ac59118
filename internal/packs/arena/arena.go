// Package arena keeps long-lived strings together, apart from the short-lived ones that
// they are made of.
//
// It frees nothing by itself, and does not find equal strings.
package arena

import "strings"

// A Strings holds long-lived strings. The zero value is empty. Allocated one by one between a scan's
// short-lived strings, they would fragment the heap. A dropped string takes up memory
// until all strings in the same piece are dropped.
type Strings struct {
	b    strings.Builder
	size int // of all texts so far
}

// pieceSize is the largest piece that is allocated for several texts, in bytes.
const pieceSize = 8 << 10

// Text returns a copy of s.
func (k *Strings) Text(s string) string {
	begin := k.reserve(len(s))
	k.b.WriteString(s)
	return k.b.String()[begin:]
}

// Bytes is Text for a byte slice.
func (k *Strings) Bytes(s []byte) string {
	begin := k.reserve(len(s))
	k.b.Write(s)
	return k.b.String()[begin:]
}

// reserve makes room for n bytes and returns the offset where they begin.
func (k *Strings) reserve(n int) int {
	if k.b.Cap()-k.b.Len() < n {
		k.b.Reset()
		k.b.Grow(max(n, min(k.size, pieceSize))) // few texts get a small piece
	}
	k.size += n
	return k.b.Len()
}
