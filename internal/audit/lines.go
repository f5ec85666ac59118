package audit

import (
	"context"
	"errors"
)

// A Writer is where lines are written: a [Log], or chains in a store.
type Writer interface {
	// Append returns when the entry is where it cannot be lost.
	Append(Entry) error
	// AppendLazy returns when the entry is written. It cannot be lost a second later.
	AppendLazy(Entry) error
	// AppendAll is AppendLazy for several entries. If it returns an error, some of them
	// may be written.
	AppendAll([]Entry) error
	// Failures returns how often an entry that was written lazily may have been lost.
	Failures() int
	// Ready returns why no entry could be written now.
	Ready(context.Context) error
	Close() error
}

// ErrUnavailable means that the store that has the log cannot be reached, or did not
// take the entry.
var ErrUnavailable = errors.New("the store of the audit log cannot be reached")

// A Chain makes the lines of a log that is not in files. The zero value is an empty
// chain, and a copy is a chain of its own.
type Chain struct{ last link }

// Line returns the line of the next entry, with its line feed. It removes tokens, and
// sets Seq, Prev and Hash. After an error the chain is as it was.
func (c *Chain) Line(e *Entry) ([]byte, error) {
	if e.Event == "" {
		return nil, errors.New("the entry has no event")
	}
	*e = withoutTokens(*e)
	e.Time = e.Time.UTC()
	e.Seq, e.Prev = c.last.seq+1, c.last.hash
	if c.last.seq == 0 {
		e.Prev = zeroHash
	}
	line, err := encode(e)
	if err != nil {
		return nil, err
	}
	c.last = link{seq: e.Seq, hash: e.Hash, prev: e.Prev}
	return line, nil
}

// Last returns the number and the hash of the last entry; 0 and zeros if there is none.
func (c *Chain) Last() (seq int64, hash string) {
	if c.last.seq == 0 {
		return 0, zeroHash
	}
	return c.last.seq, c.last.hash
}

// ParseLine reads a line without its line feed. It reports whether the line is intact:
// an entry that has the hash it names.
func ParseLine(line []byte) (e Entry, intact bool) {
	e, intact, err := parse(line)
	return e, intact && err == nil
}

// MaxLine is the most bytes of one line.
const MaxLine = maxLine
