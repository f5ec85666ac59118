package approvals

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// sets is a fake [Changes] that returns what it is told to and records requests.
type sets struct {
	list []ChangeSet
	view ChangeView
	err  error
	got  []string
}

func (s *sets) Sets() ([]ChangeSet, error) { return s.list, s.err }
func (s *sets) Changes() <-chan struct{}   { return nil }
func (s *sets) note(f string, a ...any) error {
	s.got = append(s.got, fmt.Sprintf(f, a...))
	return s.err
}

func (s *sets) View(_ context.Context, id string, paths []string) (ChangeView, error) {
	return s.view, s.note("view %s %q", id, paths)
}

func (s *sets) Apply(_ context.Context, id, token string, paths []string) (ChangeResult, error) {
	return ChangeResult{Done: 1, Left: []Change{{Path: "b\x1b[2J", Reason: "it was changed"}}}, s.note("apply %s %s %q", id, token, paths)
}

func (s *sets) Discard(_ context.Context, id string, paths []string) (ChangeResult, error) {
	return ChangeResult{Done: 1}, s.note("discard %s %q", id, paths)
}

func (s *sets) Undo(_ context.Context, id string) (ChangeResult, error) {
	return ChangeResult{Done: 1}, s.note("undo %s", id)
}

// The page's requests reach the change sets, and nothing is applied that was not
// viewed.
func TestChanges(t *testing.T) {
	raw := "a\xff\x1b[2J" // paths can be like this
	s := &sets{view: ChangeView{Diffs: []Diff{{Path: raw, Text: "create\n"}}, Token: "t1"}}
	d, _ := testDesk(t, func(o *Options) { o.Changes = s })
	post := func(path, body string, status int, want string) {
		t.Helper()
		res, got := asPage(d, "POST "+path, body).send(t, d)
		if res.StatusCode != status || !strings.Contains(got, want) || strings.Contains(got, "\x1b") || strings.Contains(got, `\u001b`) {
			t.Errorf("POST %s %s = %d %s, want %d and %q", path, body, res.StatusCode, got, status, want)
		}
	}
	key := keyOf(raw)
	post("/changes/view", `{"set":"s1"}`, 200, `"key":"`+key+`"`)
	post("/changes/view", `{"set":"s1","keys":["`+key+`"]}`, 200, `"token":"t1"`)
	post("/changes/decide", `{"set":"s1","do":"apply","token":"t1","keys":["`+key+`"]}`, 200, `"reason":"it was changed"`)
	post("/changes/decide", `{"set":"s1","do":"discard"}`, 200, `"done":1`)
	post("/changes/decide", `{"set":"s1","do":"undo"}`, 200, `"done":1`)
	want := []string{`view s1 []`, fmt.Sprintf("view s1 %q", []string{raw}), fmt.Sprintf("apply s1 t1 %q", []string{raw}), `discard s1 []`, `undo s1`}
	if fmt.Sprint(s.got) != fmt.Sprint(want) {
		t.Errorf("the sets were asked %q, want %q", s.got, want)
	}

	s.got = nil
	post("/changes/decide", `{"set":"s1","do":"apply"}`, 400, "look at the changes")
	post("/changes/decide", `{"set":"s1","do":"undo","keys":["`+key+`"]}`, 400, "a whole set")
	post("/changes/decide", `{"set":"s1","do":"allow"}`, 400, "a whole set")
	post("/changes/decide", `{"set":"s1","do":"discard","keys":["%"]}`, 400, "no such file")
	post("/changes/decide", `{"set":"s1","do":"discard","keys":[""]}`, 400, "no such file")
	post("/changes/decide", `{"do":"discard"}`, 400, "which change set")
	post("/changes/view", `{"set":"s1","more":1}`, 400, "invalid")
	for _, r := range []request{
		asPage(d, "POST /changes/decide", `{"set":"s1","do":"discard"}`).with("X-Packs-Key", ""),
		asPage(d, "POST /changes/decide", `{"set":"s1","do":"discard"}`).with("Cookie", ""),
		asPage(d, "POST /changes/decide", `{"set":"s1","do":"discard"}`).with("Origin", ""),
		asPage(d, "POST /changes/decide", `{"set":"s1","do":"discard"}`).with("Host", "evil.example"),
		asPage(d, "POST /changes/view", `{"set":"s1"}`).with("X-Packs-Key", ""),
		asPage(d, "GET /changes/view", ""),
	} {
		if res, body := r.send(t, d); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s %v = %d %s, want 403", r.line, r.headers, res.StatusCode, body)
		}
	}
	if len(s.got) > 0 {
		t.Errorf("the sets were asked %q by requests that were refused", s.got)
	}
	s.err = errors.New("it is gone\x1b[2J")
	post("/changes/view", `{"set":"s1"}`, 409, "it is gone")
	post("/changes/decide", `{"set":"s1","do":"undo"}`, 409, "it is gone")
}

// The list of sets is bounded, and safe to show.
func TestChangesAreBounded(t *testing.T) {
	s := &sets{}
	many := make([]Change, maxPageChanges+5)
	for i := range many {
		many[i] = Change{Path: fmt.Sprintf("f%d\u202e", i), Kind: "create", Reason: "x"}
	}
	for i := range maxPageSets + 3 {
		s.list = append(s.list, ChangeSet{ID: fmt.Sprint("s", i), Folder: "/p\x1b", Held: many})
	}
	s.list = append(s.list, ChangeSet{ID: "done", Applied: many[:1]})
	d, _ := testDesk(t, func(o *Options) { o.Changes = s })
	got := d.changeSets()
	if len(got.Held) != maxPageSets || got.More != 3 || len(got.Applied) != 1 {
		t.Fatalf("%d sets wait, %d were applied and %d are left out", len(got.Held), len(got.Applied), got.More)
	}
	if h := got.Held[0]; h.Count != len(many) || len(h.Changes) != maxPageChanges || strings.ContainsAny(h.Folder+h.Changes[0].Path, "\x1b\u202e") {
		t.Errorf("a set is sent as %+v", h)
	}
	s.err = errors.New("the disk is gone")
	if got := d.changeSets(); got.Problem != "the disk is gone" || got.Held == nil {
		t.Errorf("when the list cannot be read: %+v", got)
	}
}
