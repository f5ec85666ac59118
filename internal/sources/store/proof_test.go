package store

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Exactly the proofs of the present and previous versions are kept.
func TestProofs(t *testing.T) {
	s := open(t)
	version := func(proof string) {
		t.Helper()
		p, e, err := add(s, map[string]string{"SKILL.md": proof})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		e.Unsigned, e.Signature = false, &lock.Signature{Kind: "sigstore", Identity: "me", Issuer: "x", Bundle: digestOf(proof)}
		err = s.Change(t.Context(), func(tx *Tx) error {
			if err := tx.KeepProofs([]byte(proof)); err != nil {
				return err
			}
			return tx.Install(Arrival{"triage", p, e})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, proof := range []string{"one", "two", "three", "four"} {
		version(proof)
	}
	for _, proof := range []string{"three", "four"} {
		if data, err := s.Proof(digestOf(proof)); err != nil || string(data) != proof {
			t.Errorf("Proof of %s = %q, %v", proof, data, err)
		}
	}
	if data, err := s.Proof(digestOf("one")); err == nil {
		t.Errorf("the proof of version one is kept: %q", data)
	}
	for _, digest := range []string{"", "sha256:", "sha256:../../x", "sha256:" + strings.Repeat("0", 63), "md5:" + strings.Repeat("0", 64)} {
		if data, err := s.Proof(digest); err == nil {
			t.Errorf("Proof(%q) = %q", digest, data)
		}
	}
	file := filepath.Join(s.Dir, inner, "proofs", strings.TrimPrefix(digestOf("four"), "sha256:")+".json")
	if err := os.WriteFile(file, []byte("five"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := s.Proof(digestOf("four")); err == nil {
		t.Errorf("a changed proof counts: %q", data)
	}
}

// A project's link in place of the folder is not followed: nothing behind it is
// removed.
func TestProofsLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links take a right here")
	}
	s := open(t)
	install(t, s, "triage", map[string]string{"SKILL.md": "one"})
	victim := filepath.Join(s.Dir, "mine.md")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"..", t.TempDir()} {
		link := filepath.Join(s.Dir, inner, "proofs")
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if err := s.Change(t.Context(), func(tx *Tx) error { return tx.KeepProofs([]byte("x")) }); err == nil {
			t.Errorf("a link to %s was followed", target)
		}
		if _, err := os.Stat(victim); err != nil {
			t.Error(err)
		}
	}
}
