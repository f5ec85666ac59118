// Package logbuf has a buffer that a test reads while the server under test, or
// a process, writes to it.
package logbuf

import (
	"bytes"
	"sync"
)

// A Buffer holds what was written to it. It is safe for concurrent use, and its
// zero value is empty.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
