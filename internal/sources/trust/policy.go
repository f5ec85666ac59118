package trust

import (
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// A Refusal says that a pack is refused because of its signer, its source's history or
// its age. Old and New are the expected and the actual state, for a person to compare.
type Refusal struct{ Reason, Old, New string }

func (e *Refusal) Error() string {
	return fmt.Sprintf("%s\n  before %s\n  now    %s", e.Reason, e.Old, e.New)
}

// Words describes a signer in words.
func Words(s *lock.Signature) string {
	if s == nil {
		return "nobody"
	}
	var parts []string
	for _, p := range []string{s.Identity, s.Key, s.Repository, s.Ref, s.Issuer, s.Runner} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ", ")
}

// Check compares a pack's signer with the previous one, member by member. A new pack
// may have any signer, and a person decides.
func Check(before *lock.Entry, now *lock.Signature) error {
	if before == nil || before.Signature == nil || before.Signature.Same(now) {
		return nil
	}
	reason := "another signer than before"
	if now == nil {
		reason = "it is no longer signed"
	}
	return &Refusal{Reason: reason, Old: Words(before.Signature), New: Words(now)}
}
