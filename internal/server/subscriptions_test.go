package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// listen opens a stream of 2026-07-28 for some resources, and returns the stream and
// the resources that its acknowledgement names.
func listen(c *servertest.Client, uris ...string) (*servertest.Stream, []string) {
	c.T.Helper()
	l := c.Open("POST", "/mcp", map[string]any{"id": "s", "method": "subscriptions/listen", "params": withMeta(map[string]any{
		"notifications": map[string]any{"resourceSubscriptions": uris, "promptsListChanged": true},
	}, false)})
	m := l.Next()
	params, _ := m["params"].(map[string]any)
	got, _ := params["notifications"].(map[string]any)
	return l, texts(got["resourceSubscriptions"])
}

// Bounds of package subscriptions.
const (
	maxWatched = 200 // resources of a chat
	maxListens = 64  // streams of a chat
)

// However a client spells a file's URI, and on however many streams, it is told about
// the file once, under its own spelling.
func TestSubscriptionsFollowFilesNotSpellings(t *testing.T) {
	w := newWorld(t, triage, lookOften)
	s := newSite(t, w)
	c := s.Newer(tokenAda, nil)
	const plain, odd, odder = "skill://triage/docs/steps.md", "skill://triage/docs/%73teps.md", "skill://triage/docs/step%73.md"
	first, got := listen(c, plain, odd, odder, plain)
	if len(got) != 1 || got[0] != plain {
		t.Errorf("the stream has %q, want %s once", got, plain)
	}
	second, got := listen(c, odder)
	if len(got) != 1 || got[0] != odder {
		t.Errorf("the other stream has %q, want %s", got, odder)
	}
	w.put("triage/docs/next.md", "Step two, which is longer.\n", 0o644)
	if err := os.Rename(filepath.Join(w.root, "triage/docs/next.md"), filepath.Join(w.root, "triage/docs/steps.md")); err != nil {
		t.Fatal(err)
	}
	for want, l := range map[string]*servertest.Stream{plain: first, odder: second} {
		m := l.Next()
		if params, _ := m["params"].(map[string]any); m["method"] != "notifications/resources/updated" || params["uri"] != want {
			t.Errorf("the stream for %s has %v", want, m)
		}
	}
	first.Stop()
	second.Stop()
}

// What all streams of a chat watch together is bounded, and so is the number of
// streams. Other chats are not affected, and a stream that ends makes room.
func TestSubscriptionsOfAChat(t *testing.T) {
	w := newWorld(t, triage)
	var uris []string
	for i := range maxWatched + 1 {
		name := fmt.Sprintf("triage/docs/n%d.md", i)
		w.put(name, "", 0o644)
		uris = append(uris, "skill://"+name)
	}
	s := newSite(t, w)
	s.Transport.MaxIdleConnsPerHost = 2 * maxListens
	c := s.Newer(tokenAda, nil)
	_, a := listen(c, uris[:maxSubscriptions+1]...)
	last, b := listen(c, uris[maxSubscriptions:]...)
	if len(a) != maxSubscriptions || len(b) != maxWatched-maxSubscriptions {
		t.Errorf("the streams have %d and %d, want %d and %d", len(a), len(b), maxSubscriptions, maxWatched-maxSubscriptions)
	}
	if _, got := listen(c, uris[maxWatched]); len(got) != 0 {
		t.Errorf("one more than a chat can have: %q", got)
	}
	if _, got := listen(c, uris[0]); len(got) != 1 {
		t.Errorf("one that is watched already: %q", got)
	}
	if _, got := listen(s.Newer(tokenGrace, nil), uris[maxWatched]); len(got) != 1 {
		t.Errorf("another chat: %q", got)
	}
	for range maxListens - 4 {
		listen(c)
	}
	listened := func() bool {
		e, _ := c.Ask("subscriptions/listen", map[string]any{"notifications": map[string]any{"resourceSubscriptions": uris[:1]}})["error"].(map[string]any)
		return e == nil || e["code"] != float64(wire.CodeBusy)
	}
	if listened() {
		t.Errorf("there are more than %d streams", maxListens)
	}
	last.Stop()
	until(t, "a stream makes room", func() bool {
		l, got := listen(c, uris[maxWatched])
		if len(got) != 1 {
			l.Stop()
		}
		return len(got) == 1
	})
}

// No work is done for a client that has no place left.
func TestFullIsSeenFirst(t *testing.T) {
	w := newWorld(t, triage)
	w.initialize()
	c := w.srv.chats.All()[0]
	for i := range maxWatched {
		c.AddSubscriber(fmt.Sprint(i))
	}
	// It does not exist, which would be a different error.
	sess := wire.NewSession(w.srv, nil, c, new(wire.Peer), nil)
	if err := sess.SubscribeToResourceErr("skill://triage/not/there.md"); err == nil || !strings.Contains(err.Error(), "too many subscriptions") {
		t.Errorf("SubscribeToResourceErr() = %v, want that there are too many", err)
	}
	c.DropSubscriber("0")
	if err := sess.SubscribeToResourceErr("skill://triage/not/there.md"); !errors.Is(err, address.ErrNoResource) || !c.AddSubscriber("0") || len(sess.SubscribedResources()) != 0 {
		t.Errorf("SubscribeToResourceErr() = %v, and %v is kept", err, sess.SubscribedResources())
	}
}
