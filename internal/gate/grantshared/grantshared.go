// Package grantshared keeps the answers that hold in every chat in a store that several
// replicas of a server share: an answer on one counts on all, and so does its end.
//
// It reads the store for each decision. If it cannot, nothing is allowed.
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

// ErrFull means that a person has no room for another grant.
var ErrFull = errors.New("too many grants")

const (
	prefix    = "g."  // of the keys of grants; the digest follows
	maxGrants = 10000 // of all people
	// loadTime is how long reading and writing may take together.
	loadTime = 10 * time.Second
)

// Store is a [grants.Store]. It is safe for concurrent use.
type Store struct {
	mirror *store.Mirror
	share  int // grants that one person may have

	mu   sync.Mutex
	read map[string]parsed // :: key → the grant, as it was read last
}

// parsed is a grant and the revision that it was read from.
type parsed struct {
	rev   uint64
	grant grants.Grant
}

// New returns a store of the grants in a mirror, shared equally among this many
// people. The mirror must be of a sealed store: anybody who can write a grant can
// allow a call.
func New(m *store.Mirror, people int) *Store {
	return &Store{mirror: m, share: max(1, maxGrants/max(1, people)), read: make(map[string]parsed)}
}

// Load returns the grants, in the order in which they were given, including
// everything that any replica wrote before the call. An error matches
// [grants.ErrUnavailable].
func (s *Store) Load() ([]grants.Grant, error) {
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	all, _, err := s.load(ctx)
	return all, err
}

// load returns the grants, and the revision of each by its digest.
func (s *Store) load(ctx context.Context) (all []grants.Grant, revs map[string]uint64, err error) {
	if err := s.mirror.Sync(ctx); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", grants.ErrUnavailable, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	revs = make(map[string]uint64)
	read := make(map[string]parsed)
	for key, e := range s.mirror.All(prefix) {
		p := s.read[key]
		if p.rev != e.Rev {
			p = parsed{rev: e.Rev}
			if err := json.Unmarshal(e.Value, &p.grant); err != nil || prefix+p.grant.Digest != key {
				return nil, nil, fmt.Errorf("%w: the entry %s is not a grant of this version", grants.ErrUnavailable, key)
			}
		}
		read[key] = p
		revs[p.grant.Digest] = p.rev
		all = append(all, p.grant.Clone())
	}
	s.read = read
	slices.SortFunc(all, func(a, b grants.Grant) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Digest, b.Digest))
	})
	return all, revs, nil
}

// Update lets change edit the grants and stores what differs. It stores what allows
// less first. An error means that not everything was stored, and that no new grant
// was; somebody may have changed the same grant at the same moment. If it matches
// [grants.ErrUnknown], the store did not answer, and may have done what it was asked.
func (s *Store) Update(change func([]grants.Grant) ([]grants.Grant, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	old, revs, err := s.load(ctx)
	if err != nil {
		return err
	}
	before := make(map[string][]byte, len(old))
	for i := range old {
		if before[old[i].Digest], err = strictjson.Encode(&old[i]); err != nil {
			return fmt.Errorf("reading a grant: %w", err)
		}
	}
	now, err := change(old)
	if err != nil {
		return err
	}
	if now, err = s.divide(now, before); err != nil {
		return err
	}
	var less, more []func() error
	after := make(map[string]bool, len(now))
	for _, g := range now {
		value, err := strictjson.Encode(&g)
		if err != nil {
			return fmt.Errorf("writing a grant: %w", err)
		}
		if g.Digest != call.DigestOf(g.Facts) || after[g.Digest] {
			return fmt.Errorf("writing a grant: the digest of %s is not its own", g.ID)
		}
		after[g.Digest] = true
		if string(value) == string(before[g.Digest]) {
			continue
		}
		put := func() error {
			_, err := s.mirror.Put(ctx, prefix+g.Digest, value, revs[g.Digest], 0)
			return err
		}
		if g.Void != nil {
			less = append(less, put)
		} else {
			more = append(more, put)
		}
	}
	for digest := range before {
		if !after[digest] {
			less = append(less, func() error { return s.mirror.Delete(ctx, prefix+digest, revs[digest]) })
		}
	}
	for _, write := range append(less, more...) {
		err := write()
		if errors.Is(err, store.ErrAway) {
			err = fmt.Errorf("%w: %w", grants.ErrUnknown, err)
		}
		if err != nil {
			return fmt.Errorf("writing a grant: %w", err)
		}
	}
	return nil
}

// divide returns the grants without those that have been void for longest of people
// with too many. A person with too many valid grants keeps them, but cannot add.
func (s *Store) divide(all []grants.Grant, before map[string][]byte) ([]grants.Grant, error) {
	count := make(map[string]int)
	for _, g := range all {
		count[g.Person]++
	}
	void := slices.DeleteFunc(slices.Clone(all), func(g grants.Grant) bool { return g.Void == nil })
	slices.SortFunc(void, func(a, b grants.Grant) int { return a.Void.At.Compare(b.Void.At) })
	goes := make(map[string]bool)
	for _, g := range void {
		if count[g.Person] > s.share {
			count[g.Person]--
			goes[g.Digest] = true
		}
	}
	for _, g := range all {
		if count[g.Person] > s.share && before[g.Digest] == nil {
			return nil, ErrFull
		}
	}
	return slices.DeleteFunc(all, func(g grants.Grant) bool { return goes[g.Digest] }), nil
}
