package grantshared

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

const (
	chatPrefix = "gc." // of the keys of chats; the chat's id follows
	// chatTime is how long an unused chat remembers what was allowed in it: as long as
	// an unused chat lasts over HTTP.
	chatTime = time.Hour
	// chatSkew is how far the clocks of servers may differ. The clock of the store ends
	// an entry; the one of a server only ends entries that somebody put back.
	chatSkew      = 5 * time.Minute
	maxChat       = 768 << 10 // bytes of one chat; NATS refuses messages of 1 MiB
	maxAllChats   = 64 << 20  // bytes of all chats; each person has an equal share
	maxChatFiles  = 200       // files of a pack that a grant names
	changeRetries = 5         // of a change that other replicas were faster with
)

// Chats are what was allowed in the chats that replicas have in common, each in an entry
// that expires when no replica has used it for an hour. They are a [grants.ChatStore],
// safe for concurrent use.
type Chats struct {
	mirror *store.Mirror
	feed   *store.Feed
	people int
	now    func() time.Time

	mu    sync.Mutex
	chats map[string]chat   // :: chat → what the mirror has of it
	newer map[string]newest // :: chat → the newest version that this replica knows
}

// A chat is an entry of the store. Version grows with every write, so that an older value
// that somebody puts back is noticed by every replica that knows a newer one.
type chat struct {
	Version int64          `json:"version"`
	Until   time.Time      `json:"until"` // by the clock of its writer
	Person  string         `json:"person,omitempty"`
	Client  string         `json:"client,omitempty"` // its latest name for itself
	Grants  []grants.Grant `json:"grants"`           // oldest first

	bytes int
}

// newest is a version of a chat, and when the older ones have expired.
type newest struct {
	version int64
	until   time.Time
}

// NewChats returns the chats in a mirror, of so many people. The mirror must be of a
// sealed store. now is the clock; nil means time.Now.
func NewChats(m *store.Mirror, people int, now func() time.Time) *Chats {
	if now == nil {
		now = time.Now
	}
	return &Chats{mirror: m, feed: m.Feed(chatPrefix), people: max(1, people), now: now, chats: make(map[string]chat), newer: make(map[string]newest)}
}

// catchUp takes what the mirror has. The caller holds mu.
func (s *Chats) catchUp() {
	changed := s.feed.Take()
	for _, key := range changed {
		id := strings.TrimPrefix(key, chatPrefix)
		delete(s.chats, id)
		if e, ok := s.mirror.Entry(key); ok {
			if c, err := s.read(id, e); err == nil {
				s.chats[id] = c
			}
		}
	}
	if len(changed) > 0 {
		for id, n := range s.newer {
			if s.now().After(n.until) {
				delete(s.newer, id)
			}
		}
	}
}

// errOld means that the value of an entry was put back, or is not one.
var errOld = errors.New("what the store has of the chat does not count")

// read returns the chat in an entry, and remembers its version. The caller holds mu.
func (s *Chats) read(id string, e store.Entry) (chat, error) {
	var c chat
	if err := json.Unmarshal(e.Value, &c); err != nil || c.Version < s.newer[id].version || s.over(c) {
		return chat{}, errOld
	}
	s.newer[id] = newest{c.Version, c.Until.Add(chatSkew)}
	c.bytes = len(e.Value)
	return c, nil
}

// over reports whether a chat was not used for so long that the store has removed it.
func (s *Chats) over(c chat) bool { return s.now().After(c.Until.Add(chatSkew)) }

// All is [grants.ChatStore.All], with what other replicas wrote before the call, if the
// store can be reached.
func (s *Chats) All() []grants.InChat {
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	_ = s.mirror.Sync(ctx) // otherwise what is known has to do
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	var all []grants.InChat
	for id, c := range s.chats {
		for _, g := range c.Grants {
			if !s.over(c) {
				all = append(all, grants.InChat{Grant: g.Clone(), Chat: id, Client: c.Client})
			}
		}
	}
	slices.SortFunc(all, func(a, b grants.InChat) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID)) })
	return all
}

// Of is [grants.ChatStore.Of]. It knows what was in the store at the last Load of a
// [Store] of the same mirror. It has the chat last for another hour, if that is due.
func (s *Chats) Of(id string) []grants.Grant {
	s.mu.Lock()
	s.catchUp()
	c := s.chats[id]
	s.mu.Unlock()
	if len(c.Grants) == 0 || s.over(c) {
		return nil
	}
	if c.Until.Sub(s.now()) < chatTime*3/4 {
		// If this fails, the chat may expire; then the person is asked again.
		_ = s.change(id, func(c chat) (chat, bool) { return c, len(c.Grants) > 0 })
	}
	return c.Grants
}

// Fits is [grants.ChatStore.Fits].
func (s *Chats) Fits(caller *call.Caller, g grants.Grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	_, fits := s.with(caller, s.chats[caller.Chat], g)
	return fits
}

// with returns a chat with one more grant, without the oldest ones for which there is no
// room. The caller holds mu.
func (s *Chats) with(caller *call.Caller, c chat, g grants.Grant) (_ chat, fits bool) {
	room := maxAllChats / s.people
	for id, other := range s.chats {
		if id != caller.Chat && other.Person == g.Person {
			room -= other.bytes
		}
	}
	room = min(room, maxChat) - 1<<10 // the rest of the entry
	if len(g.Files) > maxChatFiles {
		g.Files = nil
	}
	c.Person, c.Client = g.Person, caller.Client
	all := append(slices.DeleteFunc(slices.Clone(c.Grants), g.Replaces), g)
	from := len(all)
	for ; from > 0; from-- {
		value, err := strictjson.Encode(&all[from-1])
		if room -= len(value) + 1; err != nil || room < 0 {
			break
		}
	}
	c.Grants = all[from:]
	return c, len(c.Grants) > 0
}

// Add is [grants.ChatStore.Add].
func (s *Chats) Add(caller *call.Caller, g grants.Grant) error {
	fits := false
	err := s.change(caller.Chat, func(c chat) (chat, bool) {
		c, fits = s.with(caller, c, g)
		return c, fits
	})
	if err == nil && !fits {
		return grants.ErrNoRoom
	}
	return err
}

// Void is [grants.ChatStore.Void].
func (s *Chats) Void(id string, void func(grants.Grant) *grants.Void) error {
	return s.edit(id, func(all []grants.Grant) (_ []grants.Grant, changes bool) {
		for i, g := range all {
			v := void(g)
			changes = changes || v != g.Void
			all[i].Void = v
		}
		return all, changes
	})
}

// Drop is [grants.ChatStore.Drop].
func (s *Chats) Drop(id string, is func(grants.Grant) bool) error {
	return s.edit(id, func(all []grants.Grant) (_ []grants.Grant, changes bool) {
		had := len(all)
		all = slices.DeleteFunc(all, is)
		return all, len(all) != had
	})
}

// edit changes the grants of a chat, if there is anything to change.
func (s *Chats) edit(id string, edit func([]grants.Grant) ([]grants.Grant, bool)) error {
	s.mu.Lock()
	s.catchUp()
	_, changes := edit(slices.Clone(s.chats[id].Grants))
	s.mu.Unlock()
	if !changes {
		return nil
	}
	return s.change(id, func(c chat) (_ chat, changes bool) {
		c.Grants, changes = edit(slices.Clone(c.Grants))
		return c, changes
	})
}

// change replaces a chat with what edit makes of it, and has it last for an hour from
// now. edit is called with mu held, and again if another replica was faster; it reports
// whether there is anything to change. What edit gets does not change.
func (s *Chats) change(id string, edit func(chat) (chat, bool)) error {
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	err := store.ErrConflict
	for try := 0; try < changeRetries && errors.Is(err, store.ErrConflict); try++ {
		var e store.Entry
		if e, err = s.mirror.Get(ctx, chatPrefix+id); err != nil && !errors.Is(err, store.ErrNotFound) {
			break
		}
		err = s.put(ctx, id, e, edit)
	}
	if errors.Is(err, store.ErrAway) {
		err = fmt.Errorf("%w: %w", grants.ErrUnknown, err)
	}
	if err != nil {
		return fmt.Errorf("changing what is allowed in a chat: %w", err)
	}
	return nil
}

// put writes what edit makes of the chat in an entry.
func (s *Chats) put(ctx context.Context, id string, e store.Entry, edit func(chat) (chat, bool)) error {
	s.mu.Lock()
	s.catchUp()
	was, _ := s.read(id, e) // what does not count is written over
	c, changes := edit(was)
	c.Version = max(s.now().UnixMicro(), s.newer[id].version+1)
	c.Until = s.now().UTC().Add(chatTime)
	s.mu.Unlock()
	if !changes {
		return nil
	}
	value, err := strictjson.Encode(&c)
	if err != nil {
		return err
	}
	rev, err := s.mirror.Put(ctx, chatPrefix+id, value, e.Rev, chatTime)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// From now on, this replica knows better than its mirror.
	e.Rev, e.Value = rev, value
	if c, err := s.read(id, e); err == nil {
		s.chats[id] = c
	}
	return nil
}
