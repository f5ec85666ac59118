package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// evil controls a terminal, reverses text and hides characters.
const evil = "a\x1b]0;PWN\x07b\u202ec\u009bd\U000e0041e"

// cardOf is a card that has one text everywhere.
func cardOf(s, quote string) prompt.Card {
	return prompt.Card{
		Title: s, Command: s, Marks: []prompt.Mark{{Role: prompt.Role(s), Text: s, Weight: prompt.Weight(s)}},
		Facts:  []prompt.Fact{{Role: prompt.Role(s), Section: prompt.Section(s), Label: s, Value: s, Weight: prompt.Weight(s)}},
		Quotes: []prompt.Quote{{Who: s, Text: quote}},
	}
}

func TestServerPendingIsSafeToShow(t *testing.T) {
	asked := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sent := control.Call{
		Code: evil, Chat: evil, Client: evil, Person: evil, Kind: evil, Pack: evil, Title: evil + "\n", Card: cardOf(evil, evil+"\nx\t▸"),
		Choices: []control.Choice{{Value: evil, Title: evil, Means: evil}}, Fields: []control.Field{{Name: evil, Title: evil}},
		Asked: asked, Waits: asked.Add(time.Minute), Expires: asked.Add(time.Hour), Note: evil, Answered: evil,
	}
	a := serveControl(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != control.PathPending {
			t.Errorf("the server was asked for %s %s", r.Method, r.URL)
		}
		answerJSON(w, control.Queue{Pending: []control.Call{sent}})
	}))
	a.Server, a.Project = evil, evil
	s := newServer(a, "")
	got, err := s.Pending(t.Context())
	if err != nil || len(got) != 1 {
		t.Fatalf("Pending() = %v, %v; want one call", got, err)
	}
	e := safetext.Line(evil)
	want := control.Call{
		Code: e, Chat: e, Client: e, Person: e, Kind: e, Pack: e, Title: e + `\n`, Card: cardOf(e, e+"\nx\t\\u25b8"),
		Choices: []control.Choice{{Value: e, Title: e, Means: e}}, Fields: []control.Field{{Name: e, Title: e}},
		Asked: asked, Waits: asked.Add(time.Minute), Expires: asked.Add(time.Hour), Note: e, Answered: e,
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("Pending() differs (-want +got):\n%s", diff)
	}
	if s.Name != e || s.Project != e {
		t.Errorf("the server is %q in %q, want both escaped", s.Name, s.Project)
	}
}

func TestServerDecides(t *testing.T) {
	expires := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	given := control.Decision{Code: "K7QM-2F9X", Decision: "once", Values: map[string]string{"url": "x\n"}, Note: "n"}
	for _, tc := range []struct {
		name   string
		status int
		answer string
		want   control.Decided
		err    error
	}{
		{"decided", 200, `{"title": "Run\u001b it?", "held": true, "expires": "2026-01-02T03:04:05Z"}`, control.Decided{Title: `Run\x1b it?`, Held: true, Expires: expires}, nil},
		{"answered", 409, `{"error": {"problem": "answered", "message": "the call K7QM-2F9X: denied\u001b"}}`, control.Decided{},
			&RefusedError{409, "answered", `the call K7QM-2F9X: denied\x1b`}},
		{"without words", 500, `oops`, control.Decided{}, &RefusedError{500, "", "the server answered with the status 500: oops"}},
		{"redirect", 302, ``, control.Decided{}, &RefusedError{302, "", "the server answered with the status 302"}},
		{"no content", 204, ``, control.Decided{}, &RefusedError{204, "", "the server answered with the status 204"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(serveControl(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var got control.Decision
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != http.MethodPost || r.URL.Path != control.PathDecide || r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("the server was asked for %s %s as %q (%v)", r.Method, r.URL, r.Header.Get("Content-Type"), err)
				}
				if diff := cmp.Diff(given, got); diff != "" {
					t.Errorf("the decision differs (-want +got):\n%s", diff)
				}
				w.Header().Set("Location", "http://192.0.2.1/")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.answer)
			})), "")
			got, err := s.Decide(t.Context(), given)
			if !cmp.Equal(tc.want, got) || !cmp.Equal(tc.err, err) {
				t.Errorf("Decide() = %+v, %+v; want %+v, %+v", got, err, tc.want, tc.err)
			}
		})
	}
	for _, answer := range []string{"", "{", `{"held": "yes"}`} {
		s := newServer(serveControl(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })), "")
		_, err := s.Decide(t.Context(), given)
		if _, refused := errors.AsType[*RefusedError](err); err == nil || refused {
			t.Errorf("Decide() = %v when the answer is %q, want an error that leaves it open", err, answer)
		}
	}
}

func TestServerWatch(t *testing.T) {
	event := func(code string) string {
		data, _ := json.Marshal(control.Queue{Pending: []control.Call{{Code: code, Title: "\x1b"}}})
		return "event: pending\ndata: " + string(data) + "\n\n"
	}
	for _, tc := range []struct {
		name, stream string
		want         []string // codes, then how it ended
	}{
		{"two", event("A") + event("B"), []string{"A", "B", "EOF"}},
		{"with comments and other events", ":hello\n\n: ping\nevent: history\ndata: {}\n\nretry: 5\n" + event("A"), []string{"A", "EOF"}},
		{"several lines, CRLF", "event: pending\r\ndata: {\"pending\":\r\ndata:[{\"code\":\"A\"}]}\r\n\r\n", []string{"A", "EOF"}},
		{"torn", event("A") + "event: pending\ndata: {\"pending\":[]}\n", []string{"A", "EOF"}},
		{"no event name", "data: {}\n\n", []string{"EOF"}},
		{"not JSON", event("A") + "event: pending\ndata: {\n\n" + event("B"), []string{"A", "the server's event is not right: unexpected end of JSON input"}},
		{"nothing", "", []string{"EOF"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(serveControl(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, tc.stream)
			})), "")
			var got []string
			for calls, err := range s.Watch(t.Context()) {
				if err != nil {
					got = append(got, err.Error())
				}
				for _, c := range calls {
					if c.Title != "" && c.Title != `\x1b` {
						t.Errorf("the title is %q", c.Title)
					}
					got = append(got, c.Code)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Watch() differs (-want +got):\n%s", diff)
			}
		})
	}
}

// A watcher that stops, or whose context ends, disconnects from the server.
func TestServerWatchEnds(t *testing.T) {
	gone := make(chan struct{}, 2)
	s := newServer(serveControl(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "event: pending\ndata: {\"pending\":[]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	})), "")
	for range s.Watch(t.Context()) {
		break
	}
	<-gone
	ctx, cancel := context.WithCancel(t.Context())
	for _, err := range s.Watch(ctx) {
		if err != nil {
			t.Errorf("Watch() = %v after its context ended, want nothing", err)
		}
		cancel()
	}
	cancel()
	<-gone
}

// Whatever a server says, the browser is sent only to a plain file in the run
// folder.
func TestServerOpenPage(t *testing.T) {
	dir := runFolder(t)
	plantFile(t, dir, "open-a.html", nil)
	outside := plantFile(t, t.TempDir(), "outside.html", nil)
	for _, tc := range []struct{ named, want, err string }{
		{filepath.Join(dir, "open-a.html"), filepath.Join(dir, "open-a.html"), ""},
		{"/elsewhere/open-a.html", filepath.Join(dir, "open-a.html"), ""},
		{outside, "", "not there"},
		{"", "", "regular file"},
		{"..", "", "regular file"},
		{"https://example.com/", "", "not there"},
	} {
		s := newServer(serveControl(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); r.Method != http.MethodPost || r.URL.Path != control.PathOpen || string(body) != "{}" {
				t.Errorf("the server was asked for %s %s with %q (%v)", r.Method, r.URL, body, err)
			}
			answerJSON(w, control.Opened{File: tc.named})
		})), dir)
		got, err := s.OpenPage(t.Context())
		if got != tc.want || (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("OpenPage() = %q, %v when the server says %q; want %q, %q", got, err, tc.named, tc.want, tc.err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "open-b.html")); err != nil {
		t.Skipf("symlink: %v", err)
	}
	s := newServer(serveControl(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, control.Opened{File: "open-b.html"}) })), dir)
	if got, err := s.OpenPage(t.Context()); err == nil {
		t.Errorf("OpenPage() = %q when the server names a link, want an error", got)
	}
}

func TestReadAtMost(t *testing.T) {
	if got, err := readAtMost(strings.NewReader("abc"), 3); string(got) != "abc" || err != nil {
		t.Errorf("readAtMost(3 bytes, 3) = %q, %v; want all", got, err)
	}
	if got, err := readAtMost(strings.NewReader("abcd"), 3); err == nil {
		t.Errorf("readAtMost(4 bytes, 3) = %q, want an error", got)
	}
}
