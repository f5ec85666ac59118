// Package team lets persons answer calls over a team's HTTP server: each sees the calls
// that they may decide about, and their own, and answers them with a token of theirs.
//
// It has the requests of package control that list, follow and decide, for programs with a
// token, and the same for the script of the approval page. Who a person is, its caller has
// found out; what the person may see and decide, package gate says. Where a token is sent,
// it refuses browsers: a program sends it, never a browser on its own.
package team

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Calls are the waiting calls as one person may see and answer them. [gate.View]
// implements it.
type Calls interface {
	Pending() []queue.Pending
	Decide(code string, v queue.Verdict) (queue.Pending, error)
	Changes() <-chan struct{}
}

const (
	maxStreams    = 512 // of all persons
	maxEach       = 8   // streams of one person
	maxNote       = 200 // bytes of what a program says of how an answer was given; it goes into the log
	beatTime      = 15 * time.Second
	restTime      = 100 * time.Millisecond // between two updates of a stream
	stallTime     = 10 * time.Second       // for a reader to take an update
	retryAfter    = "5"                    // seconds
	notForBrowser = "this is not for browsers"
)

// A Desk answers the requests of persons. Make one with [New].
type Desk struct {
	view   func(approvers.Person) Calls
	logger *slog.Logger

	mu      sync.Mutex
	streams int
	each    map[string]int // :: person → streams
}

// New returns a desk. view returns what a person may see and answer.
func New(view func(approvers.Person) Calls, logger *slog.Logger) *Desk {
	return &Desk{view: view, logger: logger, each: make(map[string]int)}
}

// Serve answers a request below [control.TeamPrefix] of a person. A stream ends with the
// request's context.
func (d *Desk) Serve(w http.ResponseWriter, r *http.Request, p approvers.Person) {
	for _, name := range []string{"Origin", "Sec-Fetch-Site", "Cookie"} {
		if _, there := r.Header[name]; there {
			control.Fail(w, http.StatusForbidden, control.ProblemForbidden, notForBrowser)
			return
		}
	}
	if p.String() == "" {
		control.Fail(w, http.StatusForbidden, control.ProblemForbidden, "this token has no name, so nobody could tell whose answer it is; use one of http.tokens or of the identity provider")
		return
	}
	route := r.Method + " " + strings.TrimPrefix(r.URL.EscapedPath(), control.TeamPrefix) // as a proxy has seen it
	switch calls := d.view(p); route {
	case "GET " + control.PathPending:
		control.Answer(w, queueOf(calls))
	case "GET " + control.PathEvents:
		d.stream(w, r, p.String(), calls, nil)
	case "POST " + control.PathDecide:
		d.decide(w, r, calls, queue.ChannelTerminal)
	default:
		control.Fail(w, http.StatusNotFound, control.ProblemInvalid, "there is no such address")
	}
}

// A Hello is what a page shows of whose it is.
type Hello struct {
	Person  string    `json:"person"`
	Version string    `json:"version"` // of the program
	Now     time.Time `json:"now"`
}

// ServePage answers a request of the script of a person's approval page, of which its
// caller has found out that it is that. version is the program's.
func (d *Desk) ServePage(w http.ResponseWriter, r *http.Request, p approvers.Person, version string) {
	switch calls := d.view(p); r.Method + " " + strings.TrimPrefix(r.URL.EscapedPath(), control.TeamPrefix) {
	case "GET /events":
		d.stream(w, r, p.String(), calls, &Hello{Person: safetext.Line(p.String()), Version: safetext.Line(version), Now: time.Now()})
	case "POST /decide":
		d.decide(w, r, calls, queue.ChannelPage)
	default:
		control.Fail(w, http.StatusNotFound, control.ProblemInvalid, "there is nothing of that name")
	}
}

func queueOf(calls Calls) control.Queue {
	q := control.Queue{Pending: []control.Call{}}
	for _, p := range calls.Pending() {
		q.Pending = append(q.Pending, control.CallOf(p))
	}
	return q
}

// decide passes a decision on and sends the outcome.
func (d *Desk) decide(w http.ResponseWriter, r *http.Request, calls Calls, channel string) {
	var in control.Decision
	if !control.ReadJSON(w, r, &in) {
		return
	}
	decision, ok := queue.ParseDecision(in.Decision)
	if !ok {
		control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, "the decision is none of once, chat, always and deny")
		return
	}
	if len(in.Note) > maxNote {
		control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, "the note is too long")
		return
	}
	p, err := calls.Decide(in.Code, queue.Verdict{
		Decision: decision, Values: in.Values, Channel: channel, Note: safetext.Line(in.Note), Gone: in.Gone,
	})
	if code, ok := errors.AsType[*queue.CodeError](err); ok {
		control.Fail(w, control.StatusOf(code.Problem), string(code.Problem), safetext.Line(code.Error()))
		return
	}
	if err != nil {
		d.logger.Error("a decision could not be carried out", "err", err)
		control.Fail(w, http.StatusInternalServerError, control.ProblemInternal, "the decision could not be carried out, so nothing was allowed; see the server's log")
		return
	}
	control.Answer(w, control.Decided{Title: p.Title, Held: p.Waits.IsZero(), Expires: p.Expires, Carried: p.Carried})
}

// stream sends the person's calls, now and after every change of them, until the reader
// leaves. It says nothing of changes of other people's. A page is greeted first.
func (d *Desk) stream(w http.ResponseWriter, r *http.Request, person string, calls Calls, hello *Hello) {
	if !d.begin(person) {
		w.Header().Set("Retry-After", retryAfter)
		control.Fail(w, http.StatusTooManyRequests, control.ProblemInternal, "too many terminals and pages of yours, or of all, are watching; close some")
		return
	}
	defer d.end(person)
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // the request has no body, and the stream outlasts it
	w.Header().Set("Content-Type", "text/event-stream")
	var last []byte
	var beat time.Time // when something is to be sent at the latest
	for {
		rest := time.After(restTime)
		changed := calls.Changes() // before reading, so that no change is missed
		data, err := json.Marshal(queueOf(calls))
		if err != nil {
			d.logger.Error("an event of the approvals could not be made", "err", err)
			return
		}
		var out []byte
		switch {
		case !bytes.Equal(data, last):
			last = data
			out = event("pending", data)
		case !time.Now().Before(beat):
			out = []byte(":\n\n")
		}
		if hello != nil {
			greeting, err := json.Marshal(hello)
			if err != nil {
				d.logger.Error("an event of the approvals could not be made", "err", err)
				return
			}
			out, hello = append(event("hello", greeting), out...), nil
		}
		if len(out) > 0 {
			if rc.SetWriteDeadline(time.Now().Add(stallTime)) != nil {
				return
			}
			if _, err := w.Write(out); err != nil || rc.Flush() != nil {
				return
			}
			beat = time.Now().Add(beatTime)
		}
		select {
		case <-changed:
		case <-time.After(time.Until(beat)): // a call may have expired, which changes nothing by itself
		case <-r.Context().Done():
			return
		}
		select {
		case <-rest:
		case <-r.Context().Done():
			return
		}
	}
}

// event returns an event of a stream.
func event(name string, data []byte) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}

func (d *Desk) begin(person string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams >= maxStreams || d.each[person] >= maxEach {
		return false
	}
	d.streams++
	d.each[person]++
	return true
}

func (d *Desk) end(person string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams--
	if d.each[person]--; d.each[person] == 0 {
		delete(d.each, person)
	}
}
