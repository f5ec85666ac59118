package browser_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	programs "github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A fakeQueue is what the page shows. To the page, its decisions look like the gate's.
type fakeQueue struct {
	mu      sync.Mutex
	changed chan struct{}
	pending []queue.Pending
	history []queue.Past
	ended   []queue.CodeError
	refuse  error
	got     chan string // decisions: code, decision, channel, values, and whether the client is gone
}

func newQueue(p ...queue.Pending) *fakeQueue {
	return &fakeQueue{pending: p, changed: make(chan struct{}), got: make(chan string, 100)}
}

func (q *fakeQueue) Pending() []queue.Pending { q.mu.Lock(); defer q.mu.Unlock(); return q.pending }
func (q *fakeQueue) History() []queue.Past    { q.mu.Lock(); defer q.mu.Unlock(); return q.history }
func (q *fakeQueue) Ended() []queue.CodeError {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ended
}
func (q *fakeQueue) Changes() <-chan struct{} { q.mu.Lock(); defer q.mu.Unlock(); return q.changed }

// edit changes the queue and notifies everyone.
func (q *fakeQueue) edit(change func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *fakeQueue) add(p queue.Pending) {
	q.edit(func() { q.pending = append(slices.Clip(q.pending), p) })
}

func (q *fakeQueue) drop(code string) {
	q.edit(func() {
		var left []queue.Pending
		for _, p := range q.pending {
			if p.Code != code {
				left = append(left, p)
			}
		}
		q.pending = left
	})
}

func (q *fakeQueue) Decide(code string, v queue.Verdict) (queue.Pending, error) {
	q.mu.Lock()
	refuse := q.refuse
	var found queue.Pending
	for _, p := range q.pending {
		if p.Code == code {
			found = p
		}
	}
	q.mu.Unlock()
	if refuse != nil {
		return queue.Pending{}, refuse
	}
	if found.Code == "" {
		return queue.Pending{}, &queue.CodeError{Code: code, Problem: queue.CodeUnknown}
	}
	q.edit(func() {
		q.history = append([]queue.Past{{
			Time: time.Now(), Chat: found.Chat, Call: code, Kind: found.Kind, Title: found.Title, Decision: v.Decision.String(), Channel: v.Channel,
		}}, q.history...)
	})
	q.drop(code)
	got := fmt.Sprint(code, " ", v.Decision, " ", v.Channel, " ", v.Values)
	if v.Gone {
		got += " though its client is gone"
	}
	q.got <- got
	return found, nil
}

// want waits for the next decision and compares it.
func (q *fakeQueue) want(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-q.got:
		if got != want {
			t.Errorf("the page decided %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("nothing was decided, want %q", want)
	}
}

func (q *fakeQueue) wantNothing(t *testing.T) {
	t.Helper()
	select {
	case got := <-q.got:
		t.Errorf("the page decided %q, want nothing", got)
	default:
	}
}

// rooms contains one chat.
type rooms struct {
	mu      sync.Mutex
	changed chan struct{}
	chat    approvals.Chat
	files   map[string]string
	refuse  error
}

func (r *rooms) Chats() []approvals.Chat {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.chat
	c.Packs = append([]approvals.Pack(nil), c.Packs...)
	return []approvals.Chat{c}
}

func (r *rooms) Changes() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

func (r *rooms) SetAttached(_, pack string, on bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return r.refuse
	}
	for i := range r.chat.Packs {
		if r.chat.Packs[i].ID == pack {
			r.chat.Packs[i].Attached = on
		}
	}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	return nil
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

func (r *rooms) OpenArtifact(_, path string) (io.ReadSeekCloser, approvals.Artifact, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.chat.Artifacts {
		if content, ok := r.files[path]; ok && a.Path == path {
			return file{bytes.NewReader([]byte(content))}, a, nil
		}
	}
	return nil, approvals.Artifact{}, fs.ErrNotExist
}

// theRoom returns a chat with an attached pack, a detached one, and files.
func theRoom(now time.Time) *rooms {
	return &rooms{
		chat: approvals.Chat{
			ID: "chat-1", Client: "claude 1.4.2", Ends: "until this client closes",
			Packs: []approvals.Pack{
				{ID: "triage", Name: "triage", Description: "Triage incidents.", Trust: "user", Attached: true},
				{ID: "acme/lint", Name: "lint", Description: "Check Markdown before it is published.", Trust: "untrusted", Problems: []string{"SKILL.md:3: the description is longer than 1,024 characters"}},
			},
			Artifacts: []approvals.Artifact{
				{Path: "out/report.txt", Size: 12, MIME: "text/plain; charset=utf-8", Modified: now.Add(-time.Minute)},
				{Path: "out/page.html", Size: 2048, MIME: "text/html", Modified: now.Add(-2 * time.Minute)},
				{Path: "out/data.bin", Size: 5 << 20, MIME: "application/octet-stream", Modified: now.Add(-3 * time.Minute)},
			},
		},
		files: map[string]string{"out/report.txt": "all is well\n", "out/page.html": "<script>document.title='ran'</script>"},
	}
}

// greetCard and lintCard are the questions of the two calls.
func greetCard() prompt.Card {
	r := aboutPack("triage", "/packs/triage", call.TrustUser, "ab", "Triage incidents.")
	r.Kind, r.Workspace = call.KindRun, "/desk/chat"
	r.Run = &call.Run{
		Tool: "greet", About: "Say hello to somebody.",
		Command: sandbox.Command{
			Program: programs.Program{Name: "python3", Path: "/usr/bin/python3", Resolved: "/usr/bin/python3"},
			Args:    []string{"/packs/triage/greet.py", "--name=Ada"}, Dir: "/home/ada/site", Workspace: "/desk/chat",
		},
		Policy: sandbox.Policy{ReadOnly: []string{"/packs/triage"}, Writable: []string{"/desk/chat"}},
	}
	return cardOf(r)
}

func lintCard() prompt.Card {
	r := aboutPack("acme/lint", "/home/ada/site/.packs/lint", call.TrustUntrusted, "cd", "Check Markdown before it is published.")
	r.Kind = call.KindOpen
	return cardOf(r)
}

func aboutPack(id, dir string, trust call.Trust, digest, about string) call.Request {
	return call.Request{
		Caller:    call.Caller{Client: "claude 1.4.2", ChatEnd: "until this client closes"},
		Pack:      call.Pack{ID: id, Dir: dir, Trust: trust, Digest: "sha256:" + strings.Repeat(digest, 32), About: about},
		Arguments: call.ParseArguments([]byte(`{}`)),
	}
}

func cardOf(r call.Request) prompt.Card {
	card, err := prompt.New(&r, prompt.Ask{Box: sandbox.Report{Level: sandbox.LevelFull, NetworkEnforced: true}})
	if err != nil {
		panic(err) // it is short
	}
	return card
}

// greet returns a waiting call, and lint another; a third has returned.
func greet(now time.Time) queue.Pending {
	return queue.Pending{
		Code: "K7QM-2F9X", Chat: "chat-1", Client: "claude 1.4.2", Kind: call.KindRun, Pack: "triage",
		Title: "Run tool greet of pack triage?", Card: greetCard(),
		Choices: []queue.Choice{
			{Value: "once", Title: "Once: this exact call", Means: "Once: this exact call, one time."},
			{Value: "chat", Title: "Chat: this tool, any arguments", Means: "This chat: this tool with any valid arguments, until this client closes."},
			{Value: "always", Title: "Always: this tool, any arguments", Means: "Always: this tool with any valid arguments, in every client, until anything about it changes."},
			{Value: "deny", Title: "Deny", Means: "Deny: the call does not happen."},
		},
		Asked: now.Add(-13 * time.Second), Waits: now.Add(32 * time.Second), Expires: now.Add(587 * time.Second),
	}
}

func lint(now time.Time) queue.Pending {
	return queue.Pending{
		Code: "B3XD-77HN", Chat: "chat-1", Client: "claude 1.4.2", Kind: call.KindOpen, Pack: "acme/lint",
		Title: "Open the documents of pack acme/lint?", Card: lintCard(),
		Choices: []queue.Choice{{Value: "once", Title: "Once: this exact call", Means: "Once: this exact call, one time."}, {Value: "deny", Title: "Deny", Means: "Deny: the call does not happen."}},
		Asked:   now.Add(-10 * time.Second), Expires: now.Add(530 * time.Second),
	}
}

// openDesk serves the queue. It returns a function that returns the path of a file that
// leads to the page.
func openDesk(t *testing.T, q *fakeQueue, r *rooms) (*approvals.Desk, func() string) {
	t.Helper()
	return openDeskAt(t, q, r, "")
}

// openDeskAt is openDesk at an address; empty: as in the program.
func openDeskAt(t *testing.T, q *fakeQueue, r *rooms, listen string) (*approvals.Desk, func() string) {
	t.Helper()
	return openDeskWith(t, q, r, func(o *approvals.Options) { o.Listen = listen })
}

// openDeskWith is openDesk with other options.
func openDeskWith(t *testing.T, q *fakeQueue, r *rooms, change func(*approvals.Options)) (*approvals.Desk, func() string) {
	t.Helper()
	var file string
	o := approvals.Options{
		Calls: q, RunDir: t.TempDir() + "/run", Server: "server-1", Project: "/home/ada/site", Version: "0.6.0", Page: true,
		OpenBrowser: func(f string) error { file = f; return nil },
	}
	if r != nil {
		o.Chats = r
	}
	change(&o)
	d, err := approvals.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return d, func() string {
		t.Helper()
		if err := d.OpenPage(); err != nil {
			t.Fatal(err)
		}
		return "file://" + file
	}
}

// named returns a call with another code and title.
func named(p queue.Pending, code, title string) queue.Pending {
	p.Code, p.Title, p.Card.Title = code, title, title
	return p
}
