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
	value, err := strictjson.Encode(&e)
	if err != nil {
		return fmt.Errorf("ending answers: %w", err)
	}
	const tries = 3
	for range tries {
		var have store.Entry
		have, err = s.mirror.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
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

// Ended reports whether somebody has taken an answer back for all replicas. It knows
// what was in the store at the last Load, and counts what it cannot read.
func (s *Store) Ended(g grants.Grant) bool {
	for _, entry := range s.mirror.All(endedPrefix) {
		var e grants.Ended
		if err := json.Unmarshal(entry.Value, &e); err != nil || e.Covers(g) {
			return true
		}
	}
	return false
}
