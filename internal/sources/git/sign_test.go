package git

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// Signatures by the real git and ssh-keygen are found; a changed commit is refused.
func TestSigner(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen: not found")
	}
	s := serveGit(t)
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command("ssh-keygen", "-l", "-f", key).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(out))[1]
	s.git("", "config", "gpg.format", "ssh")
	s.git("", "config", "user.signingkey", key)
	tree := s.tree(line{"100644", "SKILL.md", sourcestest.Document})
	plain := s.commit(tree, "plain")
	s.git("", "tag", "-s", "-m", "one", "signed-tag", plain)
	signed := s.git("", "commit-tree", "-S", "-m", "message\n\nwith a body", tree)
	s.git("", "update-ref", "refs/heads/signed", signed)
	raw := s.git("", "cat-file", "commit", signed)
	forged := s.git(strings.Replace(raw, "with a body", "with another", 1)+"\n", "hash-object", "-t", "commit", "-w", "--stdin")
	s.git("", "update-ref", "refs/heads/forged", forged)

	for ref, want := range map[string]string{"plain": "", "signed-tag": want, "signed": want, "forged": "an error"} {
		r, err := address.Parse("file://" + s.dir + "@" + ref)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := Open(t.Context(), &web.Access{}, r)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		switch by, err := snap.Signer(); {
		case err != nil:
			t.Log(err)
			got = "an error"
		case by != nil:
			got = by.Key
			proves(t, snap, got)
		}
		if got != want {
			t.Errorf("%s is signed by %q, want %q", ref, got, want)
		}
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
}

// proves fails unless what is kept of a signature proves it again, for this commit and
// for no other, and as long as no byte of it changes.
func proves(t *testing.T, snap sources.Snapshot, key string) {
	t.Helper()
	proof := snap.(sources.Signed).SignerProof()
	if got, err := Prove(proof, snap.Pin()); err != nil || got != key {
		t.Errorf("the proof is by %q, %v, want %q", got, err, key)
	}
	if _, err := Prove(proof, "git:"+strings.Repeat("1", 40)); err == nil {
		t.Error("the proof is good for another commit")
	}
	for i := range proof {
		bad := bytes.Clone(proof)
		bad[i] ^= 1
		if got, err := Prove(bad, snap.Pin()); err == nil && got == key && !bytes.Contains(proof[:i], []byte("-----BEGIN")) {
			t.Errorf("the proof is good with another byte at %d", i)
			break
		}
	}
}
