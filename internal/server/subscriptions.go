package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

const (
	// maxWatched is how many resources all clients of a chat together can subscribe
	// to.
	maxWatched = 200
	// maxListens is how many streams of 2026-07-28 a chat can have open for news.
	maxListens = 64
	// maxLooks is how many files the chats of one person may look at in one round,
	// [lookEvery]. If there are more, all of them are looked at less often.
	maxLooks = 1000
)

// lookEvery is how often the watched resources are looked at: only whether their
// files changed, not what is in them.
const lookEvery = time.Second

// A look is the state of a resource's file when it was last looked at. The zero look
// is of a file that does not exist.
type look struct {
	size     int64
	modified time.Time
}

var errTooManyListens = errors.New("too many streams for news are open; end some of them first")

// ResourceKey returns the canonical spelling of a resource's URI: all spellings mean
// the same file.
func (c *chat) ResourceKey(uri string) (key string, err error) {
	u, ok := address.Parse(uri)
	if !ok {
		return "", errNoResource
	}
	return u.String(), nil
}

// Watch watches a resource for as long as anybody subscribes to it.
func (c *chat) Watch(key string) error {
	u, ok := address.Parse(key)
	if !ok {
		return errNoResource
	}
	now, err := c.server.look(c, c.server.catalog(context.Background(), c), u)
	if err != nil {
		return err
	}
	c.watch(key, now)
	return nil
}

// AddSubscriber counts one more subscriber of a resource. It returns false if the
// chat has too many resources.
func (c *chat) AddSubscriber(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subscribers[key] == 0 {
		if len(c.subscribers) >= maxWatched || c.isOver {
			return false
		}
		c.server.looksAt(c.person, 1)
	}
	if c.subscribers == nil {
		c.subscribers = make(map[string]int)
	}
	c.subscribers[key]++
	return true
}

// DropSubscriber undoes AddSubscriber.
func (c *chat) DropSubscriber(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.subscribers[key] {
	case 0: // the chat has ended
	case 1:
		delete(c.subscribers, key)
		c.server.looksAt(c.person, -1)
	default:
		c.subscribers[key]--
	}
}

// looksAt adds to the number of resources that a person's chats watch.
func (s *Server) looksAt(person string, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks == nil {
		s.looks = make(map[string]int)
	}
	if s.looks[person] += more; s.looks[person] == 0 {
		delete(s.looks, person)
	}
}

// lookPause returns how long a chat waits between two rounds, so that all chats of a
// person together look no more often than maxLooks allows.
func (s *Server) lookPause(person string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.every * time.Duration(1+max(0, s.looks[person]-1)/maxLooks)
}

// listenPlace takes one of the chat's places for a stream of news, and returns the
// function that gives it back.
func (c *chat) listenPlace() (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listens >= maxListens {
		return nil, false
	}
	c.listens++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.listens--
	}, true
}

// look looks at the file of a resource, under the chat's Catalog. The error is
// [errNoResource] if the URI names nothing that this chat may know about.
func (s *Server) look(c *chat, catalog *packs.Catalog, u address.URI) (look, error) {
	if u.Scheme == address.SchemeWorkspace {
		handle, inside, ok := cutHandle(u.Path)
		sp := c.workspaces.Named(handle)
		if !ok || sp == nil || !s.offer.MayReadWorkspaces() {
			return look{}, errNoResource
		}
		dir, err := sp.Open()
		if err != nil {
			return look{}, errNoResource
		}
		defer dir.Close()
		return lookAt(dir, inside)
	}
	for _, at := range address.Places(catalog, u) {
		dir, err := at.Pack.OpenDir()
		if err != nil {
			continue
		}
		if s.given.KeepsOut(at.Pack) != nil || !s.offer.MayGive(at) {
			dir.Close()
			continue
		}
		l, err := lookAt(dir, at.Path)
		dir.Close()
		if err == nil {
			return l, nil
		}
	}
	return look{}, errNoResource
}

func lookAt(dir *packfs.Dir, name string) (look, error) {
	info, err := dir.Stat(name)
	if err != nil {
		return look{}, errNoResource
	}
	// No news about what cannot be read, such as a file with a second name.
	f, err := dir.OpenFile(name)
	if err != nil {
		return look{}, errNoResource
	}
	f.Close()
	return look{size: info.Size(), modified: info.ModTime()}, nil
}

// watch watches a resource from now on. One goroutine of the chat looks at all of
// them; Close waits for it.
func (c *chat) watch(key string, now look) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched == nil {
		c.watched = make(map[string]look)
	}
	if _, known := c.watched[key]; !known {
		c.watched[key] = now
	}
	if c.watching == nil && !c.isOver {
		c.watching = make(chan struct{})
		go c.lookAround(c.watching)
	}
}

// lookAround looks at the watched resources until there are none, or the chat ends.
func (c *chat) lookAround(done chan struct{}) {
	defer close(done)
	pause := time.NewTimer(c.server.lookPause(c.person))
	defer pause.Stop()
	for {
		select {
		case <-c.over:
			return
		case <-pause.C:
		}
		c.mu.Lock()
		maps.DeleteFunc(c.watched, func(key string, _ look) bool { return c.subscribers[key] == 0 })
		if len(c.watched) == 0 {
			c.watching = nil
			c.mu.Unlock()
			return
		}
		before := maps.Clone(c.watched)
		c.mu.Unlock()
		c.lookOnce(before)
		pause.Reset(c.server.lookPause(c.person))
	}
}

// lookOnce tells the subscribers about resources that differ from before.
func (c *chat) lookOnce(before map[string]look) {
	catalog := c.server.catalog(context.Background(), c)
	for _, uri := range slices.Sorted(maps.Keys(before)) {
		var now look // it is gone
		if u, ok := address.Parse(uri); ok {
			now, _ = c.server.look(c, catalog, u)
		}
		if now == before[uri] {
			continue
		}
		c.mu.Lock()
		_, still := c.watched[uri]
		if still {
			c.watched[uri] = now
		}
		c.mu.Unlock()
		if still {
			c.tell(wire.Note{Method: mcp.MethodNotificationResourceUpdated, URI: uri})
		}
	}
}

// end stops what the chat does in the background, and waits for it.
func (c *chat) end() {
	c.mu.Lock()
	if !c.isOver {
		c.isOver = true
		close(c.over)
		c.server.looksAt(c.person, -len(c.subscribers))
		c.subscribers = nil
	}
	watching := c.watching
	c.mu.Unlock()
	if watching != nil {
		<-watching
	}
}
