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

// maxSubscriptions is how many resources one client can subscribe to at once.
const maxSubscriptions = 100

// lookEvery is how often the resources that somebody subscribed to are looked
// at: only whether their files changed, not what is in them.
const lookEvery = time.Second

// A look is how a resource's file was when it was last looked at. The zero look
// is of one that is not there.
type look struct {
	size     int64
	modified time.Time
}

var errTooManySubscriptions = errors.New("too many subscriptions; end some of them first")

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

func (s *session) subscribe(uri string) error {
	now, err := s.chat.server.look(s.chat, uri)
	if err != nil {
		return err
	}
	p := s.peer
	p.mu.Lock()
	if p.uris == nil {
		p.uris = make(map[string]bool)
	}
	full := len(p.uris) >= maxSubscriptions && !p.uris[uri]
	if !full {
		p.uris[uri] = true
	}
	p.mu.Unlock()
	if full {
		return errTooManySubscriptions
	}
	s.chat.watch(uri, now)
	return nil
}

// SubscribeToResource is what the library would call if there were no errors.
func (s *session) SubscribeToResource(uri string) { _ = s.SubscribeToResourceErr(uri) }

// UnsubscribeFromResource is called for resources/unsubscribe, and at the end
// of a stream.
func (p *peer) UnsubscribeFromResource(uri string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.uris, uri)
}

// SubscribedResources returns the URIs that the client subscribed to.
func (p *peer) SubscribedResources() []string { return p.subscribed() }

// IsSubscribedToResource reports whether the client subscribed to a URI.
func (p *peer) IsSubscribedToResource(uri string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.uris[uri]
}

func (p *peer) subscribed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.uris))
}

// look looks at the file of a resource. The error is [errNoResource] when the
// URI leads to none that this chat may know of.
func (s *Server) look(c *chat, uri string) (look, error) {
	u, ok := parseURI(uri)
	if !ok {
		return look{}, errNoResource
	}
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
		if err != nil || s.keepsOut(at.pack.ID, at.pack.Dir) != nil {
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
func (c *chat) watch(uri string, now look) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched == nil {
		c.watched = make(map[string]look)
	}
	if _, known := c.watched[uri]; !known {
		c.watched[uri] = now
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
	t := time.NewTicker(c.server.every)
	defer t.Stop()
	for {
		select {
		case <-c.over:
			return
		case <-t.C:
		}
		wanted := make(map[string]bool)
		for _, l := range c.everyListener() {
			for _, uri := range l.subscribed() {
				wanted[uri] = true
			}
		}
		c.mu.Lock()
		maps.DeleteFunc(c.watched, func(uri string, _ look) bool { return !wanted[uri] })
		if len(c.watched) == 0 {
			c.watching = nil
			c.mu.Unlock()
			return
		}
		before := maps.Clone(c.watched)
		c.mu.Unlock()
		c.lookOnce(before)
	}
}

// lookOnce tells of the resources that differ from how they were before.
func (c *chat) lookOnce(before map[string]look) {
	// Whoever waits for a change of a resource makes no calls meanwhile.
	c.server.follow(c, c.server.catalog(context.Background(), c))
	for _, uri := range slices.Sorted(maps.Keys(before)) {
		now, _ := c.server.look(c, uri) // the zero look: it is gone
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
	}
	watching := c.watching
	c.mu.Unlock()
	if watching != nil {
		<-watching
	}
}
