// Package store keeps what the replicas of a server share, in an engine that runs
// already: NATS JetStream or PostgreSQL.
//
// A [Store] has two kinds of content. Entries are small values under keys, with
// compare-and-set and a time to live, such as grants and claims. Chains are lists of blocks
// that grow at their end and can be cut at their beginning: the audit log. A [Mirror] is a copy of all entries in memory that
// follows the changes, and that can be brought up to date. [Seal] encrypts and
// authenticates what goes into a store, so that who can write to the engine can forge
// nothing.
//
// A server that is alone has no store: its state is in its memory and in its files.
//
// All times to live count by the engine's clock. The engine decides every race: of
// several writers that expect the same revision, one succeeds. When the engine cannot be
// reached, or does not answer in time, the error is [ErrAway], and nobody knows whether
// the operation was carried out. Callers then deny.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrNotFound means that there is no such entry, or no longer.
	ErrNotFound = errors.New("not found in the store")
	// ErrConflict means that the entry, or the end of the chain, is not what the writer
	// expects. Nothing was written.
	ErrConflict = errors.New("somebody else wrote it first")
	// ErrAway means that the store cannot be reached or did not answer in time. What
	// was asked of it may have been done.
	ErrAway = errors.New("the store cannot be reached")
)

// An Entry is a value under a key.
type Entry struct {
	Key   string
	Value []byte
	Rev   uint64 // grows with each write of any key
}

// A Change is what a watcher is told.
type Change struct {
	Entry       // without a key for a mark of this store, up to whose revision all was told
	Gone   bool // the entry was deleted or expired; there is no value
	Synced bool // all entries that there were at the beginning have been told; no entry
}

// A Store is shared by replicas. Keys and names of chains are made of letters, digits,
// "-", "_" and "."; they do not begin or end with a dot. All methods are safe for
// concurrent use, and return an error that matches [ErrAway] after a few seconds at most.
type Store interface {
	// Get returns the entry with this key.
	Get(ctx context.Context, key string) (Entry, error)
	// Put writes an entry and returns its new revision. rev is the revision that it
	// must have, and 0 if there must be none. The entry expires after ttl; 0 is never.
	Put(ctx context.Context, key string, value []byte, rev uint64, ttl time.Duration) (uint64, error)
	// Delete removes the entry with this revision.
	Delete(ctx context.Context, key string, rev uint64) error
	// Watch calls f with every entry, then with a change that is Synced, and then with
	// every change, in the order of revisions. It returns when ctx is done, or when
	// changes may have been missed.
	Watch(ctx context.Context, f func(Change)) error
	// Mark returns a revision that no write before the call exceeds, and that every Watch
	// of this store reports or passes. back reports that the engine gives out revisions
	// again that Watch has already reported, up to seen: it was set back, as from a backup.
	Mark(ctx context.Context, seen uint64) (rev uint64, back bool, err error)
	// Append adds a block to the end of a chain and returns its position. prev is the
	// position of the block before it, and 0 in an empty chain. Positions grow.
	Append(ctx context.Context, chain string, prev uint64, block []byte) (uint64, error)
	// Last returns the position of the last block of a chain, and the block.
	Last(ctx context.Context, chain string) (uint64, []byte, error)
	// Read calls f with the blocks of a chain that come after a position, 0 for all,
	// until f returns an error.
	Read(ctx context.Context, chain string, after uint64, f func(pos uint64, block []byte) error) error
	// Chains returns all chains by name, each with a number that is another one after
	// each Append.
	Chains(ctx context.Context) (map[string]uint64, error)
	// Trim removes the blocks of a chain up to a position, with it. A chain without
	// blocks is no longer there.
	Trim(ctx context.Context, chain string, pos uint64) error
	Close()
}

// opTime is how long an operation may take: a store that is slower is away.
const opTime = 5 * time.Second

// goneTime is how long a store remembers that an entry was deleted, for watchers.
const goneTime = time.Hour

// Options say which store to open.
type Options struct {
	// URL is "nats://HOST:PORT[,HOST:PORT...]/NAME?replicas=N" or a URL of PostgreSQL.
	// NAME is the beginning of the names of the streams, "packs-mcp" if empty; replicas
	// is how many servers keep each message, 1 if not said.
	URL string
	// Credentials is a file of NATS credentials; empty if there is none. PostgreSQL has
	// its own variables and files for passwords.
	Credentials string
}

// Open connects to a store and makes what it needs there, if that is missing. Errors
// do not repeat the URL, which may hold a password.
func Open(ctx context.Context, o Options) (Store, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*opTime)
	defer cancel()
	switch scheme, rest, _ := strings.Cut(o.URL, "://"); scheme {
	case "nats", "tls":
		return openNATS(ctx, scheme, rest, o.Credentials)
	case "postgres", "postgresql":
		return openPostgres(ctx, o.URL)
	}
	return nil, errors.New("the URL of the store begins with neither nats:// nor postgres://")
}

// away marks an error as one of a store that cannot be reached.
func away(err error) error { return fmt.Errorf("%w: %w", ErrAway, err) }
