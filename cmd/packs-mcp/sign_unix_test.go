//go:build unix

package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
	"github.com/packs-mcp/packs-mcp/test/authority"
	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// testPublishSigned: add accepts what publish signed without comment, and from then
// on only from the same signer.
func testPublishSigned(t *testing.T, s *signing) {
	_, one, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	two, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	pack := func(words string) string {
		return filepath.Dir(s.write("own/triage/SKILL.md", "---\nname: triage\ndescription: Sorts issues.\n---\n"+words+"\n"))
	}
	first, fingerprint := s.openSSH("one", one)
	second, _ := s.openSSH("two", two)
	s.says(s.run(0, "publish", pack("one"), s.ref(":v1"), "--yes", "--sign", first), "signed   by "+fingerprint, "oci://")
	s.says(s.run(0, "publish", pack("one"), s.ref(":v1"), "--yes", "--sign", first), "The tag names just that already.")
	s.says(s.run(0, "add", s.ref(":v1"), "--yes"), "signed   by "+fingerprint)
	s.says(s.run(0, "show", "acme/triage"), fingerprint)
	s.run(0, "verify")
	s.says(s.run(4, "add", s.ref(":v1"), "--as", "other", "--yes", "--signer", "SHA256:AAAA"), "and not by SHA256:AAAA")

	s.run(0, "publish", pack("two"), s.ref(":v1"), "--yes", "--sign", first)
	s.run(0, "update", "--yes")
	s.run(0, "publish", pack("three"), s.ref(":v1"), "--yes", "--sign", second)
	s.says(s.run(4, "update", "--yes"), "another signer than before", "before "+fingerprint)
	s.run(0, "publish", pack("four"), s.ref(":v1"), "--yes")
	s.says(s.run(4, "update", "--yes"), "it is no longer signed")

	// The agent holds the key, and the flag names the public key.
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: &one}); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keys, c) }()
		}
	}()
	public, err := ssh.NewPublicKey(one.Public())
	if err != nil {
		t.Fatal(err)
	}
	pub := s.write("one.pub", string(ssh.MarshalAuthorizedKey(public)))
	s.says(s.run(1, "publish", pack("five"), s.ref(":v1"), "--yes", "--sign", pub), "there is no agent")
	s.env = []string{"SSH_AUTH_SOCK=" + at}
	s.run(0, "publish", pack("five"), s.ref(":v1"), "--yes", "--sign", pub)
	s.run(0, "update", "--yes")

	// Keys made by cosign and openssl are used by the second program.
	key := authority.NewKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cosignPub := s.write("cosign.pub", string(authority.PublicPEM(t, key)))
	plain := s.write("plain.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	locked, err := encrypted.Encrypt(der, []byte("a password"))
	if err != nil {
		t.Fatal(err)
	}
	cosign := s.write("cosign.key", string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: locked})))
	s.says(s.run(1, "publish", pack("six"), s.ref(":v2"), "--yes", "--sign", cosign), "the password does not fit the key")
	s.env = append(s.env, "COSIGN_PASSWORD=a password")
	s.says(s.run(0, "publish", pack("six"), s.ref(":v2"), "--yes", "--sign", cosign), "signed   by SHA256:")
	s.says(s.run(0, "publish", pack("six"), s.ref(":v2"), "--yes", "--sign", plain), "The tag names just that already.")
	s.says(s.run(0, "add", s.ref(":v2"), "--as", "keyed", "--yes", "--key", cosignPub), "signed   by SHA256:")
	s.run(0, "verify")

	// What cannot be signed is not published.
	for name, text := range map[string]string{"no key": "hello", "a public key": string(authority.PublicPEM(t, key)), "a damaged key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if out := s.run(1, "publish", pack("seven"), s.ref(":v3"), "--yes", "--sign", s.write("bad", text)); !strings.Contains(out, "signing with") {
			t.Errorf("%s: %s", name, out)
		}
	}
	s.says(s.run(1, "add", s.ref(":v3"), "--yes"), "there is nothing at")
}

// testIndexSigned: add verifies signatures made by index, as it does for a registry.
func testIndexSigned(t *testing.T, s *signing) {
	_, one, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, two, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	first, fingerprint := s.openSSH("one", one)
	second, _ := s.openSSH("two", two)
	pack := func(words string) string {
		s.write("own/lint/check.sh", "#!/bin/sh\n")
		s.write("own/lint/SKILL.md", "---\nname: lint\ndescription: Reads code.\n---\n")
		return filepath.Dir(filepath.Dir(s.write("own/triage/SKILL.md", "---\nname: triage\ndescription: Sorts issues.\n---\n"+words+"\n")))
	}
	out := filepath.Join(s.dir, "public")
	server := httptest.NewServer(http.FileServer(http.Dir(out)))
	t.Cleanup(server.Close)
	s.says(s.run(0, "index", pack("one"), "--out", out, "--yes", "--sign", first), "signed   by "+fingerprint)
	s.says(s.run(0, "add", server.URL, "--all", "--as", "site", "--yes"), "signed   by "+fingerprint, "site/triage", "site/lint")
	s.run(0, "verify")
	testProofs(s, fingerprint)

	s.run(0, "index", pack("two"), "--out", out, "--yes", "--sign", second)
	s.says(s.run(4, "update", "--yes"), "another signer than before", "before "+fingerprint)
	s.run(0, "index", pack("three"), "--out", out, "--yes")
	s.says(s.run(4, "update", "--yes"), "it is no longer signed")
	// Someone without the key changed the site.
	s.run(0, "index", pack("four"), "--out", out, "--yes", "--sign", first)
	sig := filepath.Join(out, ".well-known", "agent-skills", "triage.tar.gz.sig")
	good, err := os.ReadFile(sig)
	if err != nil {
		t.Fatal(err)
	}
	s.run(0, "index", pack("five"), "--out", out, "--yes", "--sign", second)
	if err := os.WriteFile(sig, good, 0o600); err != nil {
		t.Fatal(err)
	}
	s.says(s.run(4, "update", "site/triage", "--yes"), "the signature does not fit")
	s.run(0, "index", pack("six"), "--out", out, "--yes", "--sign", first)
	s.run(0, "update", "--yes")

	key := authority.NewKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pub, plain := s.write("cosign.pub", string(authority.PublicPEM(t, key))), s.write("plain.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	s.run(0, "index", pack("seven"), "--out", out, "--yes", "--sign", plain)
	s.says(s.run(0, "add", server.URL, "triage", "--as", "keyed", "--yes", "--key", pub), "signed   by SHA256:")
	s.says(s.run(1, "index", pack("eight"), "--out", out, "--yes", "--sign", s.write("bad", "hello")), "signing with")
}

// testProofs: verify checks SSH signatures again, using only local files.
func testProofs(s *signing, fingerprint string) {
	s.t.Helper()
	lockFile := filepath.Join(s.dir, "state", "packs.lock.json")
	proofs, err := filepath.Glob(filepath.Join(s.dir, "state", "sources", ".store", "proofs", "*.json"))
	if err != nil || len(proofs) != 2 {
		s.t.Fatalf("%d proofs of 2 packs are kept, %v", len(proofs), err)
	}
	for what, c := range map[string]struct{ file, old, now, says string }{
		"a changed proof":   {proofs[0], "Signature", "signature", "its proof was changed here"},
		"another signer":    {lockFile, fingerprint, "SHA256:" + strings.Repeat("A", 43), "another signer than the lock file says"},
		"another's archive": {lockFile, `"pin": "sha256:`, `"pin": "sha256:` + strings.Repeat("0", 64) + `", "was": "`, "the signature is for something else"},
	} {
		data, err := os.ReadFile(c.file)
		if err != nil || !bytes.Contains(data, []byte(c.old)) {
			s.t.Fatalf("%s: %v, %s", what, err, data)
		}
		if err := os.WriteFile(c.file, bytes.ReplaceAll(data, []byte(c.old), []byte(c.now)), 0o600); err != nil {
			s.t.Fatal(err)
		}
		s.says(s.run(4, "verify"), "unproven", c.says)
		if err := os.WriteFile(c.file, data, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.run(0, "verify")
}

// openSSH writes a private key as OpenSSH does, and returns its fingerprint.
func (s *signing) openSSH(name string, key any) (file, fingerprint string) {
	s.t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		s.t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.write(name, string(pem.EncodeToMemory(block))), ssh.FingerprintSHA256(signer.PublicKey())
}

// testSignedArchives: signatures beside an archive count, here and on a site. The
// archive is refused if they do not fit.
func testSignedArchives(t *testing.T, s *signing) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	file, fingerprint := s.openSSH("key", key)
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	data := upstream.TarGz(t, upstream.Files{"SKILL.md": "---\nname: triage\ndescription: Sorts issues.\n---\n"})
	sig, err := trust.SignSSH(signer, data, trust.NamespaceFile)
	if err != nil {
		t.Fatal(err)
	}
	if keygen, err := exec.LookPath("ssh-keygen"); err == nil { // its signatures equal ours
		archive := s.write("made/triage.tar.gz", string(data))
		if out, err := exec.CommandContext(t.Context(), keygen, "-Y", "sign", "-n", "file", "-f", file, archive).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
		s.says(s.run(0, "add", archive, "--as", "made", "--yes"), "signed   by "+fingerprint)
		ours := s.write("made/ours.sig", string(sig))
		check := exec.CommandContext(t.Context(), keygen, "-Y", "check-novalidate", "-n", "file", "-s", ours)
		check.Stdin = bytes.NewReader(data)
		if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), fingerprint) {
			t.Errorf("ssh-keygen says of our signature: %v\n%s", err, out)
		}
	}
	other, err := trust.SignSSH(signer, append([]byte("x"), data...), trust.NamespaceFile)
	if err != nil {
		t.Fatal(err)
	}
	bundle := s.by(authority.Signature{})(sources.Digest(data))
	wrong := s.by(authority.Signature{})(sources.Digest([]byte("x")))
	var mu sync.Mutex
	files := map[string][]byte{} // guarded by mu, since some are requested while others are added
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		data, ok := files[r.URL.Path]
		mu.Unlock()
		if ok {
			_, _ = w.Write(data)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(pages.Close)
	const html = "<!doctype html><title>Everything is here</title>"
	for name, c := range map[string]struct {
		sig, bundle []byte
		status      int // if nothing says how to handle signatures
		here, there string
	}{
		"ssh":                  {sig: sig, here: "signed   by " + fingerprint},
		"sigstore":             {bundle: bundle, here: "signed   by " + usualSigner},
		"of something else":    {sig: other, status: 4, here: "the signature does not fit"},
		"bundle for another":   {bundle: wrong, status: 4, here: "the signature does not fit"},
		"both, two signers":    {sig: sig, bundle: bundle, status: 4, here: "several have signed it"},
		"none":                 {status: 4, here: "nobody signed this"},
		"a page for a missing": {sig: []byte(html), bundle: []byte(html), status: 4, here: "the signature does not fit", there: "nobody signed this"},
	} {
		id := strings.NewReplacer(" ", "-", ",", "").Replace(name)
		at := s.write(id+"/triage.tar.gz", string(data))
		mu.Lock()
		clear(files)
		base := "/" + id + "/.well-known/agent-skills/"
		files["/"+id+"/triage.tar.gz"], files[base+"triage.tar.gz"] = data, data
		files[base+"index.json"] = []byte(`{"$schema":"https://schemas.agentskills.io/discovery/0.2.0/schema.json","skills":[{"name":"triage","type":"archive","description":"Sorts issues.","url":"triage.tar.gz","digest":"` + sources.Digest(data) + `"}]}`)
		for suffix, text := range map[string][]byte{".sig": c.sig, ".sigstore.json": c.bundle} {
			if text != nil {
				s.write(id+"/triage.tar.gz"+suffix, string(text))
				files["/"+id+"/triage.tar.gz"+suffix], files[base+"triage.tar.gz"+suffix] = text, text
			}
		}
		mu.Unlock()
		s.says(s.run(c.status, "add", at, "--as", id+"-here", "--yes"), c.here)
		there := c.here
		if c.there != "" {
			there = c.there
		}
		s.says(s.run(c.status, "add", pages.URL+"/"+id+"/triage.tar.gz", "--as", id+"-there", "--yes"), there)
		s.says(s.run(c.status, "add", pages.URL+"/"+id, "triage", "--as", id+"-index", "--yes"), there)
	}
	s.run(0, "verify")
	// A signature that has disappeared is noticed.
	if err := os.Remove(filepath.Join(s.dir, "ssh", "triage.tar.gz.sig")); err != nil {
		t.Fatal(err)
	}
	s.says(s.run(4, "add", filepath.Join(s.dir, "ssh", "triage.tar.gz"), "--as", "ssh-here", "--yes", "--allow-unsigned"), "it is no longer signed")
}
