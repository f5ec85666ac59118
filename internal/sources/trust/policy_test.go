package trust

import (
	"errors"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// A signed pack keeps its signer, member by member.
func TestCheck(t *testing.T) {
	ci := lock.Signature{Kind: "sigstore", Identity: "release.yml", Issuer: "https://issuer", Repository: "https://host/x", Ref: "refs/tags/v1", Runner: "github-hosted", Bundle: "sha256:1"}
	with := func(change func(*lock.Signature)) *lock.Signature {
		s := ci
		change(&s)
		return &s
	}
	for name, tt := range map[string]struct {
		before *lock.Entry
		now    *lock.Signature
		ok     bool
	}{
		"a new pack, signed":         {nil, &ci, true},
		"a new pack, unsigned":       {nil, nil, true},
		"unsigned, then signed":      {&lock.Entry{Unsigned: true}, &ci, true},
		"signed again":               {&lock.Entry{Signature: &ci}, with(func(s *lock.Signature) { s.Bundle = "sha256:2" }), true},
		"no longer signed":           {&lock.Entry{Signature: &ci}, nil, false},
		"by a key":                   {&lock.Entry{Signature: &ci}, &lock.Signature{Kind: "ssh", Key: "SHA256:x"}, false},
		"another identity":           {&lock.Entry{Signature: &ci}, with(func(s *lock.Signature) { s.Identity += "x" }), false},
		"another issuer":             {&lock.Entry{Signature: &ci}, with(func(s *lock.Signature) { s.Issuer += "x" }), false},
		"another repository":         {&lock.Entry{Signature: &ci}, with(func(s *lock.Signature) { s.Repository += "x" }), false},
		"another ref":                {&lock.Entry{Signature: &ci}, with(func(s *lock.Signature) { s.Ref = "refs/tags/attacker" }), false},
		"another runner":             {&lock.Entry{Signature: &ci}, with(func(s *lock.Signature) { s.Runner = "self-hosted" }), false},
		"another kind, the same key": {&lock.Entry{Signature: &lock.Signature{Kind: "ssh", Key: "k"}}, &lock.Signature{Kind: "key", Key: "k"}, false},
		"another public key":         {&lock.Entry{Signature: &lock.Signature{Kind: "key", Key: "k", PublicKey: "a"}}, &lock.Signature{Kind: "key", Key: "k", PublicKey: "b"}, false},
	} {
		err := Check(tt.before, tt.now)
		if (err == nil) != tt.ok || err != nil && !errors.As(err, new(*Refusal)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
