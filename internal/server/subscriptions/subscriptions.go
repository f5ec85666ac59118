// Package subscriptions looks at the resources that the clients of a chat subscribe
// to, and tells when the file of one has changed.
//
// It does not know what a resource is or who may know about it: its caller looks at
// files. It does not keep which client subscribed, and under which spelling; package
// wire does.
package subscriptions

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

const (
	// maxWatched is how many resources all clients of a chat together can subscribe
	// to.
	maxWatched = 200
	// maxListens is how many streams of 2026-07-28 a chat can have open for news.
	maxListens = 64
	// maxLooks is how many files the chats of one person may look at in one round. If
	// there are more, all of them are looked at less often.
	maxLooks = 1000
)

// Every is how often watched resources are looked at: only whether their files
// changed, not what is in them.
const Every = time.Second

// A Pace says how often the chats of a server look at their resources. It is safe for
// concurrent use.
type Pace struct {
	every time.Duration

	mu    sync.Mutex
	looks map[string]int // :: person → number of resources that their chats watch
}

// NewPace returns the Pace of a server. Its chats look every so often.
func NewPace(every time.Duration) *Pace { return &Pace{every: every} }

// add adds to the number of resources that a person's chats watch.
func (p *Pace) add(person string, more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looks == nil {
		p.looks = make(map[string]int)
	}
	if p.looks[person] += more; p.looks[person] == 0 {
		delete(p.looks, person)
	}
}

// pause returns how long a chat waits between two rounds, so that all chats of a
// person together look no more often than maxLooks allows.
func (p *Pace) pause(person string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.every * time.Duration(1+max(0, p.looks[person]-1)/maxLooks)
}

// A Look is the state of a resource's file when it was last looked at. The zero Look
// is of a file that does not exist.
type Look struct {
	size     int64
	modified time.Time
}

// LookAt looks at a file. The error is [address.ErrNoResource] if there is none that
// can be read.
func LookAt(dir *packfs.Dir, name string) (Look, error) {
	info, err := dir.Stat(name)
	if err != nil {
		return Look{}, address.ErrNoResource
	}
	// No news about what cannot be read, such as a file with a second name.
	f, err := dir.OpenFile(name)
	if err != nil {
		return Look{}, address.ErrNoResource
	}
	f.Close()
	return Look{size: info.Size(), modified: info.ModTime()}, nil
}

// A Looker looks at the file of a resource. The error is [address.ErrNoResource] if
// the URI names nothing that the chat may know about.
type Looker func(address.URI) (Look, error)

// Options are what a [Set] is made of. All are required, but for Person.
type Options struct {
	Pace   *Pace
	Person string        // whose chat it is; empty: no particular person's
	Begin  func() Looker // begins a round: looks at files with the packs as they are now
	Tell   func(uri string)
}

// A Set is what the clients of one chat subscribe to. It is safe for concurrent use.
type Set struct {
	opts Options
	over chan struct{} // closed when the chat ends

	mu          sync.Mutex
	watched     map[string]Look // :: URI of a resource with subscribers → its file when last looked at
	subscribers map[string]int  // :: such a URI → number of subscribers
	listens     int             // open streams of 2026-07-28 for news
	watching    chan struct{}   // closed when the goroutine that looks at watched ends; nil: there is none
	isOver      bool
}

// NewSet returns a Set without subscribers.
func NewSet(o Options) *Set { return &Set{opts: o, over: make(chan struct{})} }

// ResourceKey returns the canonical spelling of a resource's URI: all spellings mean
// the same file.
func (s *Set) ResourceKey(uri string) (key string, err error) {
	u, ok := address.Parse(uri)
	if !ok {
		return "", address.ErrNoResource
	}
	return u.String(), nil
}

// Watch watches a resource for as long as anybody subscribes to it.
func (s *Set) Watch(key string) error {
	u, ok := address.Parse(key)
	if !ok {
		return address.ErrNoResource
	}
	now, err := s.opts.Begin()(u)
	if err != nil {
		return err
	}
	s.watch(key, now)
	return nil
}

// AddSubscriber counts one more subscriber of a resource. It returns false if the
// chat has too many resources.
func (s *Set) AddSubscriber(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscribers[key] == 0 {
		if len(s.subscribers) >= maxWatched || s.isOver {
			return false
		}
		s.opts.Pace.add(s.opts.Person, 1)
	}
	if s.subscribers == nil {
		s.subscribers = make(map[string]int)
	}
	s.subscribers[key]++
	return true
}

// DropSubscriber undoes AddSubscriber.
func (s *Set) DropSubscriber(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.subscribers[key] {
	case 0: // the chat has ended
	case 1:
		delete(s.subscribers, key)
		s.opts.Pace.add(s.opts.Person, -1)
	default:
		s.subscribers[key]--
	}
}

// ListenPlace takes one of the chat's places for a stream of news, and returns the
// function that gives it back.
func (s *Set) ListenPlace() (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listens >= maxListens {
		return nil, false
	}
	s.listens++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.listens--
	}, true
}

// watch watches a resource from now on. One goroutine looks at all of them; Close
// waits for it.
func (s *Set) watch(key string, now Look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched == nil {
		s.watched = make(map[string]Look)
	}
	if _, known := s.watched[key]; !known {
		s.watched[key] = now
	}
	if s.watching == nil && !s.isOver {
		s.watching = make(chan struct{})
		go s.lookAround(s.watching)
	}
}

// lookAround looks at the watched resources until there are none, or the chat ends.
func (s *Set) lookAround(done chan struct{}) {
	defer close(done)
	pause := time.NewTimer(s.opts.Pace.pause(s.opts.Person))
	defer pause.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-pause.C:
		}
		s.mu.Lock()
		maps.DeleteFunc(s.watched, func(key string, _ Look) bool { return s.subscribers[key] == 0 })
		if len(s.watched) == 0 {
			s.watching = nil
			s.mu.Unlock()
			return
		}
		before := maps.Clone(s.watched)
		s.mu.Unlock()
		s.lookOnce(before)
		pause.Reset(s.opts.Pace.pause(s.opts.Person))
	}
}

// lookOnce tells the subscribers about resources that differ from before.
func (s *Set) lookOnce(before map[string]Look) {
	look := s.opts.Begin()
	for _, uri := range slices.Sorted(maps.Keys(before)) {
		var now Look // it is gone
		if u, ok := address.Parse(uri); ok {
			now, _ = look(u)
		}
		if now == before[uri] {
			continue
		}
		s.mu.Lock()
		_, still := s.watched[uri]
		if still {
			s.watched[uri] = now
		}
		s.mu.Unlock()
		if still {
			s.opts.Tell(uri)
		}
	}
}

// Close stops looking, and waits until nobody looks any more.
func (s *Set) Close() {
	s.mu.Lock()
	if !s.isOver {
		s.isOver = true
		close(s.over)
		s.opts.Pace.add(s.opts.Person, -len(s.subscribers))
		s.subscribers = nil
	}
	watching := s.watching
	s.mu.Unlock()
	if watching != nil {
		<-watching
	}
}
