package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

const (
	// maxSubscriptions is how many resources one client, or one stream of
	// 2026-07-28, can subscribe to at once.
	maxSubscriptions = 100
	// maxWatched is how many resources a chat can have watched for all of them.
	maxWatched = 200
	// maxListens is how many streams of 2026-07-28 a chat can have for news at once.
	maxListens = 64
	// maxLooks is how many looks one person's chats are worth in the time of one
	// round, [lookEvery]. With more to look at, all of them are looked at less often.
	maxLooks = 1000
)

// lookEvery is how often the resources that somebody subscribed to are looked
// at: only whether their files changed, not what is in them.
const lookEvery = time.Second

// A look is how a resource's file was when it was last looked at. The zero look
// is of one that is not there.
type look struct {
	size     int64
	modified time.Time
}

var (
	errTooManySubscriptions = errors.New("too many subscriptions; end some of them first")
	errTooManyListens       = errors.New("too many streams for news are open; end some of them first")
)

// SubscribeToResourceErr is called for resources/subscribe, and for each URI of
// a stream, which goes on without those that lead nowhere: its acknowledgement
// says which there are.
func (s *session) SubscribeToResourceErr(uri string) error {
	err := s.subscribe(uri)
	if s.listenID != nil {
		return nil
	}
	return err
}

// subscribe takes a place before it looks: a client that has none left has no
// work done for it.
func (s *session) subscribe(uri string) error {
	u, ok := parseURI(uri)
	if !ok {
		return errNoResource
	}
	key := u.String() // however it is spelled, it is one file
	took, err := s.takePlace(key, uri)
	if err != nil || !took {
		return err
	}
	now, err := s.chat.server.look(s.chat, u)
	if err != nil {
		s.UnsubscribeFromResource(uri)
		return err
	}
	s.chat.watch(key, now)
	return nil
}

// takePlace notes a subscription; it took none when the client has it already.
func (s *session) takePlace(key, uri string) (took bool, err error) {
	p := s.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.uris[key] != "":
		return false, nil
	case len(p.uris) >= maxSubscriptions || !s.chat.addSubscriber(key):
		return false, errTooManySubscriptions
	case p.uris == nil:
		p.uris = make(map[string]string)
	}
	p.uris[key] = uri
	return true, nil
}

// SubscribeToResource is what the library would call if there were no errors.
func (s *session) SubscribeToResource(uri string) { _ = s.SubscribeToResourceErr(uri) }

// UnsubscribeFromResource is called for resources/unsubscribe, and at the end
// of a stream.
func (s *session) UnsubscribeFromResource(uri string) {
	u, ok := parseURI(uri)
	if !ok {
		return
	}
	key := u.String()
	s.peer.mu.Lock()
	defer s.peer.mu.Unlock()
	if s.uris[key] == "" {
		return
	}
	delete(s.uris, key)
	s.chat.dropSubscriber(key)
}

// SubscribedResources returns the URIs that the client subscribed to, as it
// spelled them.
func (p *peer) SubscribedResources() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Values(p.uris))
}

// IsSubscribedToResource reports whether the client subscribed to a URI.
func (p *peer) IsSubscribedToResource(uri string) bool { return p.spelled(uri) != "" }

// spelled is a URI as the client spelled it when it subscribed; empty when it
// did not.
func (p *peer) spelled(uri string) string {
	u, ok := parseURI(uri)
	if !ok {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.uris[u.String()]
}

// addSubscriber counts one more client that wants to know of a resource. It
// returns false when the chat has too many resources for one more.
func (c *chat) addSubscriber(key string) bool {
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

func (c *chat) dropSubscriber(key string) {
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

// looksAt counts the resources that a person's chats look at.
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

// lookPause is how long a chat of a person's waits between two rounds, so that
// all of that person's make no more than so many looks in a second.
func (s *Server) lookPause(person string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.every * time.Duration(1+max(0, s.looks[person]-1)/maxLooks)
}

// listenPlace takes one of the places that a chat has for streams of news, and
// returns what gives it back.
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

// look looks at the file of a resource. The error is [errNoResource] when the
// URI leads to none that this chat may know of.
func (s *Server) look(c *chat, u resourceURI) (look, error) {
	if u.scheme == schemeWorkspace {
		handle, inside, ok := cutHandle(u.path)
		sp := c.spaceNamed(handle)
		if !ok || sp == nil {
			return look{}, errNoResource
		}
		dir, err := sp.openWorkspace()
		if err != nil {
			return look{}, errNoResource
		}
		defer dir.Close()
		return lookAt(dir, inside)
	}
	for _, at := range places(s.catalog(context.Background(), c), u) {
		dir, err := at.pack.OpenDir()
		if err != nil {
			continue
		}
		if s.keepsOut(at.pack.ID, at.pack.Dir) != nil || !s.mayGive(at) {
			dir.Close()
			continue
		}
		l, err := lookAt(dir, at.path)
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
	// What cannot be read, as a file with a second name, is not told about either.
	f, err := dir.OpenFile(name)
	if err != nil {
		return look{}, errNoResource
	}
	f.Close()
	return look{size: info.Size(), modified: info.ModTime()}, nil
}

// watch looks at a resource from now on, as long as anybody is subscribed to it.
// One goroutine of the chat looks at all of them; endChat waits for it.
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

// lookAround looks at the watched resources until there is none, or the chat
// ends.
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

// lookOnce tells of the resources that differ from how they were before.
func (c *chat) lookOnce(before map[string]look) {
	// Whoever waits for a change of a resource makes no calls meanwhile.
	c.server.follow(context.Background(), c)
	for _, uri := range slices.Sorted(maps.Keys(before)) {
		var now look // it is gone
		if u, ok := parseURI(uri); ok {
			now, _ = c.server.look(c, u)
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
			c.tell(note{method: mcp.MethodNotificationResourceUpdated, uri: uri})
		}
	}
}

// end ends what a chat does by itself, and waits for it.
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
