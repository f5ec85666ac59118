package team

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// none is a queue in which nothing waits, and nothing changes.
type none struct{}

func (none) Pending() []queue.Pending { return nil }
func (none) Changes() <-chan struct{} { return nil }
func (none) Decide(string, queue.Verdict) (queue.Pending, error) {
	return queue.Pending{}, &queue.CodeError{Problem: queue.CodeUnknown}
}

// One person's terminals take no place of another's, and a place is free when its
// terminal is gone.
func TestStreams(t *testing.T) {
	d := New(func(approvers.Person) Calls { return none{} }, slog.New(slog.DiscardHandler))
	over := make(chan struct{}, 4*maxEach)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.Serve(w, r, approvers.Person{Name: r.Header.Get("From")})
		over <- struct{}{}
	}))
	defer s.Close()
	watch := func(person string) (res *http.Response, leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", s.URL+control.TeamPrefix+control.PathEvents, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("From", person)
		res, err = http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res, func() { cancel(); res.Body.Close() }
	}
	var leaves []func()
	for i := range maxEach {
		res, leave := watch("ada")
		defer leave()
		leaves = append(leaves, leave)
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "event: pending") {
			t.Fatalf("stream %d begins with %q, %v", i, line, err)
		}
	}
	res, leave := watch("ada")
	defer leave()
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
		t.Errorf("one stream more: %s, Retry-After %q", res.Status, res.Header.Get("Retry-After"))
	}
	<-over
	other, leave := watch("grace")
	defer leave()
	if other.StatusCode != http.StatusOK {
		t.Errorf("another person's stream: %s", other.Status)
	}
	leaves[0]()
	<-over
	if res, leave := watch("ada"); res.StatusCode != http.StatusOK {
		t.Errorf("a stream in the place of one that ended: %s", res.Status)
	} else {
		leave()
	}
}

// A path that is written in another way leads nowhere: a proxy that keeps some people
// from some paths compares what is written.
func TestPathAsWritten(t *testing.T) {
	d := New(func(approvers.Person) Calls { return none{} }, slog.New(slog.DiscardHandler))
	for path, want := range map[string]int{control.PathPending: http.StatusOK, "/%63ontrol/pending": http.StatusNotFound, "/control%2Fpending": http.StatusNotFound} {
		w := httptest.NewRecorder()
		d.Serve(w, httptest.NewRequest("GET", control.TeamPrefix+path, nil), approvers.Person{Name: "ada"})
		if w.Code != want {
			t.Errorf("GET %s = %d, want %d", path, w.Code, want)
		}
	}
}

// What a program says of how an answer was given cannot fill the log.
func TestLongNote(t *testing.T) {
	d := New(func(approvers.Person) Calls { return none{} }, slog.New(slog.DiscardHandler))
	for n, want := range map[int]int{200: http.StatusNotFound, 201: http.StatusBadRequest} {
		r := httptest.NewRequest("POST", control.TeamPrefix+control.PathDecide, strings.NewReader(`{"code":"K7QM-2F9X","decision":"once","note":"`+strings.Repeat("x", n)+`"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		d.Serve(w, r, approvers.Person{Name: "ada"})
		if w.Code != want {
			t.Errorf("a note of %d bytes: %d, want %d", n, w.Code, want)
		}
	}
}

// others is a queue of which the reader's own part is what own has, if anything. It tells
// in looked that it was read.
type others struct {
	none
	own     chan []queue.Pending
	changed chan struct{}
	looked  chan struct{}
}

func (o others) Changes() <-chan struct{} { return o.changed }
func (o others) Pending() []queue.Pending {
	defer func() { o.looked <- struct{}{} }()
	select {
	case own := <-o.own:
		return own
	default:
		return nil
	}
}

// A stream does not tell that other people's calls change.
func TestStreamTellsNothingOfOthers(t *testing.T) {
	o := others{own: make(chan []queue.Pending, 1), changed: make(chan struct{}), looked: make(chan struct{}, 100)}
	d := New(func(approvers.Person) Calls { return o }, slog.New(slog.DiscardHandler))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.Serve(w, r, approvers.Person{Name: "ada"}) }))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+control.TeamPrefix+control.PathEvents, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	event := func(want string) {
		t.Helper()
		for _, begins := range []string{"event: pending", "data: ", ""} {
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), begins) {
				t.Fatalf("the stream has %q, want %q", lines.Text(), begins)
			}
			if begins == "data: " && !strings.Contains(lines.Text(), want) {
				t.Fatalf("the stream has %q, want %q in it", lines.Text(), want)
			}
		}
	}
	event(`"pending":[]`)
	<-o.looked
	o.changed <- struct{}{} // somebody else's
	<-o.looked
	o.own <- []queue.Pending{{Code: "K7QM-2F9X"}}
	o.changed <- struct{}{}
	event("K7QM-2F9X")
}
