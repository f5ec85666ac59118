package trust

import (
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// A Refusal is a pack that is not taken because of who signed it, or that nobody did.
// Old and New are what was expected and found, for a person to compare.
type Refusal struct{ Reason, Old, New string }

func (e *Refusal) Error() string {
	return fmt.Sprintf("%s\n  before %s\n  now    %s", e.Reason, e.Old, e.New)
}

// Words says in words who signed.
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

// Check compares who signs a pack now with who signed it before, member by member. For
// a pack that is new, anybody will do, and a person decides.
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
