package grantshared

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// endedPrefix begins the keys of what was ended; the digest of whose follows.
const endedPrefix = "ge."

// End ends answers in the chats of all replicas, for their next decisions.
func (s *Store) End(e grants.Ended) error {
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	of := sha256.Sum256([]byte(e.Person + "\x00" + e.By + "\x00" + strings.ToLower(e.Pack)))
	key := endedPrefix + hex.EncodeToString(of[:])
	const tries = 3
	var err error
	for range tries {
		var have store.Entry
		have, err = s.mirror.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			break
		}
		var before grants.Ended
		if json.Unmarshal(have.Value, &before) == nil && before.At.After(e.At) {
			e.At = before.At // this machine's clock is behind, and what was ended stays ended
		}
		var value []byte
		if value, err = strictjson.Encode(&e); err != nil {
			break
		}
		if _, err = s.mirror.Put(ctx, key, value, have.Rev, 0); !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("ending answers in the chats of all servers: %w", err)
	}
	return nil
}

// Ended reports whether somebody has taken an answer back for all replicas. rev is the
// revision of the store with which the answer was given: the store then knows what came
// first, whatever the clocks say. If it is 0, the times decide. Ended knows what was in
// the store at the last Load, and counts what it cannot read.
func (s *Store) Ended(g grants.Grant, rev uint64) bool {
	for _, entry := range s.mirror.All(endedPrefix) {
		var e grants.Ended
		err := json.Unmarshal(entry.Value, &e)
		if err != nil || rev == 0 && e.Covers(g) || rev != 0 && entry.Rev > rev && e.Concerns(g) {
			return true
		}
	}
	return false
}
