package subscriptions

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// files are what a chat's resources are at the moment.
type files struct {
	mu     sync.Mutex
	sizes  map[string]int64 // :: URI → size
	rounds int
	told   []string
}

func (f *files) set(p *Pace) *Set {
	return NewSet(Options{
		Pace: p, Person: "ada",
		Begin: func() Looker {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.rounds++
			return func(u address.URI) (Look, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				size, ok := f.sizes[u.String()]
				if !ok {
					return Look{}, address.ErrNoResource
				}
				return Look{size: size}, nil
			}
		},
		Tell: func(uri string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.told = append(f.told, uri)
		},
	})
}

// A file is looked at once in a round, however many subscribe to it, and no longer
// than somebody does.
func TestOneReadForAllSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const one, two = "skill://triage/one.md", "skill://triage/two.md"
		f, pace := &files{sizes: map[string]int64{one: 1, two: 1}}, NewPace(Every)
		s := f.set(pace)
		defer s.Close()
		for _, uri := range []string{one, "skill://triage/%6fne.md", two} {
			key, err := s.ResourceKey(uri)
			if err != nil || !s.AddSubscriber(key) {
				t.Fatalf("%s was not taken: %v", uri, err)
			}
			if err := s.Watch(key); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(s.watched) != 2 {
			t.Errorf("%v are looked at, want two files", s.watched)
		}
		f.mu.Lock()
		f.rounds = 0
		f.sizes[one] = 2
		delete(f.sizes, two)
		f.mu.Unlock()
		time.Sleep(Every)
		synctest.Wait()
		if want := []string{one, two}; !slices.Equal(f.told, want) || f.rounds != 1 {
			t.Errorf("told of %q in %d rounds, want %q in one", f.told, f.rounds, want)
		}
		for _, key := range []string{one, one, two} {
			s.DropSubscriber(key)
		}
		time.Sleep(Every)
		synctest.Wait()
		if len(s.watched) != 0 || len(s.subscribers) != 0 || s.watching != nil || len(pace.looks) != 0 {
			t.Errorf("nobody subscribes, and there are still %v, %v and %v", s.watched, s.subscribers, pace.looks)
		}
	})
}

// The end of a chat ends the looking, and nobody can subscribe after it.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const one = "skill://triage/one.md"
		f, pace := &files{sizes: map[string]int64{one: 1}}, NewPace(Every)
		s := f.set(pace)
		if !s.AddSubscriber(one) {
			t.Fatal("there is no place for the first subscriber")
		}
		if err := s.Watch(one); err != nil {
			t.Fatal(err)
		}
		s.Close()
		select {
		case <-s.watching:
		default:
			t.Error("the chat has ended, and still looks at resources")
		}
		s.DropSubscriber(one)
		if s.AddSubscriber(one) || len(pace.looks) != 0 {
			t.Errorf("after the end there are subscribers: %v", pace.looks)
		}
		s.Close()
	})
}

// What a chat can subscribe to is bounded, and so are its streams.
func TestPlaces(t *testing.T) {
	f := new(files)
	s := f.set(NewPace(Every))
	defer s.Close()
	for i := range maxWatched {
		if !s.AddSubscriber(fmt.Sprint(i)) {
			t.Fatalf("there is no place for resource %d", i)
		}
	}
	if s.AddSubscriber("more") || !s.AddSubscriber("0") {
		t.Errorf("after %d resources, want no place for another, and one for another subscriber", maxWatched)
	}
	var leave func()
	for i := range maxListens {
		var ok bool
		if leave, ok = s.ListenPlace(); !ok {
			t.Fatalf("there is no place for stream %d", i)
		}
	}
	if _, ok := s.ListenPlace(); ok {
		t.Errorf("there is a place after %d streams", maxListens)
	}
	leave()
	if _, ok := s.ListenPlace(); !ok {
		t.Error("a stream that ended left no place")
	}
}

// However many chats a person has, they look only so many times a second together.
func TestPace(t *testing.T) {
	p := NewPace(Every)
	for _, tc := range []struct{ looks, rounds int }{{0, 1}, {1, 1}, {maxLooks, 1}, {maxLooks + 1, 2}, {200 * maxLooks, 200}} {
		p.add("ada", tc.looks)
		if got := p.pause("ada"); got != time.Duration(tc.rounds)*Every {
			t.Errorf("with %d files, a round is every %s, want %d rounds", tc.looks, got, tc.rounds)
		}
		if got := p.pause("grace"); got != Every {
			t.Errorf("another's round is every %s", got)
		}
		p.add("ada", -tc.looks)
	}
}
