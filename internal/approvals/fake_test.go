package approvals

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// calls is a fake queue.
type calls struct {
	mu      sync.Mutex
	changed chan struct{}
	pending []queue.Pending
	history []queue.Past
	ended   []queue.CodeError
	detail  string // of what expires; empty: nothing does
	err     error  // of Decide
	got     []queue.Verdict
	panics  bool // Decide does
	looks   int  // calls of Pending
}

func (c *calls) Pending() []queue.Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	c.expireAll()
	return c.pending
}

// expire has a call leave the queue when it expires, without a word.
func (c *calls) expire(p queue.Pending, detail string) {
	c.set(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detail = detail
}

// expireAll drops calls that expired, if there is a word for that; mu is held.
func (c *calls) expireAll() {
	for len(c.pending) > 0 && c.detail != "" && time.Now().After(c.pending[0].Expires) {
		c.ended = append(c.ended, queue.CodeError{Code: c.pending[0].Code, Problem: queue.CodeExpired, Detail: c.detail})
		c.pending = c.pending[1:]
	}
}

func (c *calls) looked() int           { c.mu.Lock(); defer c.mu.Unlock(); return c.looks }
func (c *calls) History() []queue.Past { c.mu.Lock(); defer c.mu.Unlock(); return c.history }

func (c *calls) Ended() []queue.CodeError {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expireAll()
	return c.ended
}

func (c *calls) Changes() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

func (c *calls) set(p ...queue.Pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = p
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

func (c *calls) Decide(code string, v queue.Verdict) (queue.Pending, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.panics {
		panic("a bug")
	}
	if c.err != nil {
		return queue.Pending{}, c.err
	}
	for _, p := range c.pending {
		if p.Code == code {
			c.got = append(c.got, v)
			return p, nil
		}
	}
	return queue.Pending{}, &queue.CodeError{Code: code, Problem: queue.CodeUnknown}
}

func (c *calls) verdicts() []queue.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got
}

// rooms is a fake [Rooms] in memory. Its files are a map.
type rooms struct {
	mu    sync.Mutex
	chats []Chat
	files map[string]string // :: path → content
	set   []string
	next  chan struct{} // closed when the chats change; nil: they never change
}

func (r *rooms) Chats() []Chat            { r.mu.Lock(); defer r.mu.Unlock(); return r.chats }
func (r *rooms) Changes() <-chan struct{} { r.mu.Lock(); defer r.mu.Unlock(); return r.next }

// change replaces all chats with one.
func (r *rooms) change(c Chat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chats = []Chat{c}
	close(r.next)
	r.next = make(chan struct{})
}

func (r *rooms) SetAttached(chat, pack string, on bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pack == "missing" {
		return errors.New("there is no pack \x1b[2Jmissing")
	}
	s := "off"
	if on {
		s = "on"
	}
	r.set = append(r.set, chat+" "+pack+" "+s)
	return nil
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

func (r *rooms) OpenArtifact(chat, path string) (io.ReadSeekCloser, Artifact, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, ok := r.files[path]
	if chat != "chat-1" || !ok {
		return nil, Artifact{}, &fs.PathError{Op: "open", Path: "/secret/place/" + path, Err: fs.ErrNotExist}
	}
	for _, c := range r.chats {
		for _, a := range c.Artifacts {
			if a.Path == path {
				return file{bytes.NewReader([]byte(content))}, a, nil
			}
		}
	}
	return nil, Artifact{}, fs.ErrPermission
}

var testCall = queue.Pending{
	Code: "K7QM-2F9X", Chat: "chat-1", Client: "test 1.0", Kind: call.KindRun, Pack: "triage",
	Title: "Run tool greet of pack triage?", Card: prompt.Card{
		Title: "Run tool greet of pack triage?", Command: "./greet.sh",
		Facts: []prompt.Fact{{Role: prompt.RoleNetwork, Section: prompt.SectionAccess, Label: "network", Value: "none", Weight: prompt.Plain}},
	},
	Choices: []queue.Choice{{Value: "once", Title: "Once: this exact call", Means: "Once: this exact call, one time."}, {Value: "deny", Title: "Deny"}},
	Asked:   time.Unix(1_000, 0), Waits: time.Unix(1_045, 0), Expires: time.Unix(1_600, 0),
}

// clock is a time that tests can move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }

func (c *clock) move(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.t = c.t.Add(d) }

// testDesk returns a desk with one waiting call.
func testDesk(t *testing.T, change func(*Options)) (*Desk, *calls) {
	t.Helper()
	q := &calls{}
	q.set(testCall)
	o := Options{Calls: q, RunDir: t.TempDir() + "/run", Server: "server-1", Page: true, Terminal: true}
	if change != nil {
		change(&o)
	}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return d, q
}
