package approvals

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
)

// A part is one kind of event on a stream. It is sent at the start, and whenever
// it differs from what was last sent.
type part struct {
	event string
	read  func() any
}

// stream sends server-sent events until the reader leaves, the desk closes, or
// done is closed. It drops a reader that does not read.
func (d *Desk) stream(w http.ResponseWriter, r *http.Request, done <-chan struct{}, parts []part) {
	if !d.beginStream() {
		control.Fail(w, http.StatusServiceUnavailable, control.ProblemInternal, "too many pages and terminals are watching; close some")
		return
	}
	defer d.endStream()
	rc := http.NewResponseController(w)
	// The server's own deadline for reading would end the stream.
	_ = rc.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")

	last := make([][]byte, len(parts))
	for {
		rest := time.After(restTime)
		// Take the channels before reading, so that no change is missed.
		calls, rooms, sets := d.o.Calls.Changes(), d.chatChanges(), d.setChanges()
		var out bytes.Buffer
		for i, p := range parts {
			data, err := json.Marshal(p.read())
			if err != nil {
				d.o.Logger.Error("an event of the approval page could not be made", "err", err)
				return
			}
			if bytes.Equal(data, last[i]) {
				continue
			}
			last[i] = data
			out.WriteString("event: " + p.event + "\ndata: ")
			out.Write(data)
			out.WriteString("\n\n")
		}
		if out.Len() > 0 && !d.send(w, rc, out.Bytes()) {
			return
		}
		if !d.idle(w, r, rc, time.After(d.untilBeat()), done, calls, rooms, sets) {
			return
		}
		// Show a first change at once, and combine those that follow closely.
		select {
		case <-rest:
		case <-r.Context().Done():
			return
		case <-d.ctx.Done():
			return
		}
	}
}

// idle waits for a change or the next heartbeat. After a heartbeat the caller
// looks again, because other servers and terminals change sets too. It reports
// false when the stream is over.
func (d *Desk) idle(w http.ResponseWriter, r *http.Request, rc *http.ResponseController, beat <-chan time.Time, done, calls, rooms, sets <-chan struct{}) bool {
	select {
	case <-calls:
		return true
	case <-rooms:
		return true
	case <-sets:
		return true
	case <-beat:
		return d.send(w, rc, []byte(":\n\n"))
	case <-done:
		d.send(w, rc, []byte("event: superseded\ndata: {}\n\n"))
		return false
	case <-r.Context().Done():
		return false
	case <-d.ctx.Done():
		return false
	}
}

// untilBeat returns the time until the next heartbeat. When a call expires, one is
// due at once, since the queue itself says nothing then.
func (d *Desk) untilBeat() time.Duration {
	beat, now := beatTime, d.o.Now()
	for _, p := range d.o.Calls.Pending() {
		if left := p.Expires.Sub(now); left > 0 {
			beat = min(beat, left+time.Millisecond)
		}
	}
	return beat
}

// send writes b, and reports whether the reader took it in time.
func (d *Desk) send(w http.ResponseWriter, rc *http.ResponseController, b []byte) bool {
	if rc.SetWriteDeadline(time.Now().Add(d.o.stall)) != nil {
		return false
	}
	if _, err := w.Write(b); err != nil {
		return false
	}
	return rc.Flush() == nil
}

func (d *Desk) beginStream() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams >= maxStreams {
		return false
	}
	d.streams++
	return true
}

func (d *Desk) endStream() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams--
}

// beginPage counts an open page. done is closed when newer pages replace it.
func (d *Desk) beginPage() (done chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pages) >= maxPages {
		close(d.pages[0])
		d.pages = slices.Delete(d.pages, 0, 1)
	}
	done = make(chan struct{})
	d.pages = append(d.pages, done)
	return done
}

func (d *Desk) endPage(done chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.pages, done); i >= 0 {
		d.pages = slices.Delete(d.pages, i, i+1)
	}
}

// chatChanges returns the Changes of the chats; without a source of chats it never
// closes.
func (d *Desk) chatChanges() <-chan struct{} {
	if d.o.Chats == nil {
		return nil
	}
	return d.o.Chats.Changes()
}

// setChanges returns the change sets' Changes; without them it never closes.
func (d *Desk) setChanges() <-chan struct{} {
	if d.o.Changes == nil {
		return nil
	}
	return d.o.Changes.Changes()
}
