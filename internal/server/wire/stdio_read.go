package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
)

// A line is one message, or why there is none.
type line struct {
	data []byte
	over bool  // longer than allowed; data is its beginning
	err  error // reading ended with an error other than the end of input
}

// maxHead is how much of an overlong line is kept: enough to find the request's
// id in it.
const maxHead = 4 << 10

// readLines sends the lines of in until in ends, and then closes lines. It never
// holds more than max bytes of a line. A reader that blocks forever holds only
// this goroutine.
func readLines(ctx context.Context, in io.Reader, max int, lines chan<- line) {
	defer close(lines)
	send := func(l line) bool {
		select {
		case lines <- l:
			return true
		case <-ctx.Done():
			return false
		}
	}
	r := bufio.NewReaderSize(in, 64<<10)
	var buf []byte
	over := false
	for {
		part, err := r.ReadSlice('\n')
		if !over {
			if len(buf)+len(part) > max+1 { // the newline does not count
				head := append(bytes.Clone(buf[:min(len(buf), maxHead)]), part...)
				over, buf = true, bytes.Clone(head[:min(len(head), maxHead)])
			} else {
				buf = append(buf, part...)
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if data := TrimLine(buf); over || len(data) > 0 {
			if !send(line{data: data, over: over}) {
				return
			}
		}
		buf, over = nil, false
		if err != nil {
			if !errors.Is(err, io.EOF) {
				send(line{err: err})
			}
			return
		}
	}
}

// TrimLine removes what is not part of a message: white space, and the byte
// order mark with which some Windows programs begin a stream.
func TrimLine(b []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\xef\xbb\xbf")))
}

// idOf returns the id of a request from its beginning, or nil. The method must
// be there too: the id of an answer is one of ours, and an error with that id
// would be taken for the reply to another request.
func idOf(head []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(head))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	var id json.RawMessage
	method := false
	for id == nil || !method {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil || d.InputOffset() >= int64(len(head)) {
			return nil // a number may continue past the head
		}
		switch key {
		case "id":
			ok := false
			if id, ok = requestID(value); !ok {
				return nil
			}
		case "method":
			method = true
		case "result", "error":
			return nil
		}
	}
	return id
}
