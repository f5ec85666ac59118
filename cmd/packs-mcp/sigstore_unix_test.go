//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/oci"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
	"github.com/packs-mcp/packs-mcp/test/authority"
)

// A signing is a registry, a person and an authority whom they trust.
type signing struct {
	t     *testing.T
	built string // the folder of the real programs
	bin   string // the folder of the programs in use
	dir   string // of the person
	host  string // of the registry
	env   []string
	*authority.Authority
}

func TestSigstore(t *testing.T) {
	built := t.TempDir()
	for name, from := range map[string]string{"packs-mcp": ".", "packs-mcp-sigstore": "../packs-mcp-sigstore"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", filepath.Join(built, name), from)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", name, err, out)
		}
	}
	for name, test := range map[string]func(*testing.T, *signing){"signers": testSigners, "older": testSigstoreOlder, "program": testSigstoreProgram, "key": testSigstoreKey, "publish --sign": testPublishSigned, "index --sign": testIndexSigned, "beside archives": testSignedArchives} {
		t.Run(name, func(t *testing.T) { test(t, newSigning(t, built)) })
	}
}

func newSigning(t *testing.T, built string) *signing {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := &signing{t: t, built: built, bin: t.TempDir(), dir: t.TempDir(), host: at.Host, Authority: authority.New(t)}
	s.take("packs-mcp")
	s.take("packs-mcp-sigstore")
	s.write("root.json", string(s.Root(t, false)))
	s.write("config/config.yaml", "sources:\n  private: [127.0.0.1]\n  sigstore: ../root.json\n")
	return s
}

// take puts a built program beside the other one.
func (s *signing) take(name string) {
	s.t.Helper()
	_ = os.Remove(filepath.Join(s.bin, name)) // a script
	if err := os.Link(filepath.Join(s.built, name), filepath.Join(s.bin, name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *signing) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *signing) ref(rest string) string { return "oci://" + s.host + "/acme/triage" + rest }

// publish publishes a version of the pack with the signature that sign makes of its
// digest, and returns the digest.
func (s *signing) publish(version, words string, sign func(digest string) []byte) string {
	s.t.Helper()
	s.write(version+"/triage/SKILL.md", "---\nname: triage\ndescription: Sorts issues.\n---\n"+words+"\n")
	snap, err := sources.OpenFolder(filepath.Join(s.dir, version, "triage"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer snap.Close()
	r, err := address.Parse(s.ref(":" + version))
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := sources.NewBundle(s.t.Context(), snap, "")
	if err != nil {
		s.t.Fatal(err)
	}
	defer b.Close()
	p, err := oci.Prepare(s.t.Context(), &web.Access{Private: []string{"127.0.0.1"}}, b, r)
	if err == nil {
		defer p.Close()
		var signature []byte
		if sign != nil {
			signature = sign(p.Digest)
		}
		err = p.Publish(s.t.Context(), signature)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return p.Digest
}

// by signs as the usual signer, except for what a sets.
func (s *signing) by(a authority.Signature) func(string) []byte {
	return func(digest string) []byte {
		if a.Digest == "" {
			a.Digest = digest
		}
		return authority.JSON(s.t, s.Attest(s.t, a))
	}
}

// run runs the program, and fails unless it ends with this status. It returns what
// the program printed.
func (s *signing) run(status int, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.bin, "packs-mcp"), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"HOME=" + s.dir, "PATH=" + s.dir + ":/usr/bin:/bin", "PACKS_MCP_HOME=" + filepath.Join(s.dir, "state"), "PACKS_MCP_CONFIG=" + filepath.Join(s.dir, "config", "config.yaml"),
		"SIGSTORE_ROOT_FILE=" + filepath.Join(s.dir, "evil.json"), "TUF_ROOT=" + s.dir,
	}
	cmd.Env = append(cmd.Env, s.env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		s.t.Fatalf("packs-mcp %q ended with %v, want status %d\n%s", args, cmd.ProcessState, status, &out)
	}
	return out.String()
}

func (s *signing) says(got string, want ...string) {
	s.t.Helper()
	for _, text := range want {
		if !strings.Contains(got, text) {
			s.t.Errorf("it does not say %q:\n%s", text, got)
		}
	}
}

// helper replaces the second program by a script; "" removes it.
func (s *signing) helper(script string) {
	s.t.Helper()
	path := filepath.Join(s.bin, "packs-mcp-sigstore")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	if script == "" {
		return
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil { //nolint:gosec // a program
		s.t.Fatal(err)
	}
}

const usualSigner = authority.Identity + ", " + authority.Repository + ", " + authority.Ref + ", " + authority.Issuer + ", " + authority.Runner

func testSigners(t *testing.T, s *signing) {
	pin := s.publish("v1", "one", s.by(authority.Signature{}))

	// The question names the signer, and the lock file has everything that was shown.
	got := s.run(4, "add", s.ref(":v1"))
	s.says(got, "signed   by "+usualSigner, "says the Sigstore service of "+filepath.Join(s.dir, "root.json"), "there is no terminal to ask on")
	s.says(s.run(4, "add", s.ref(":v1"), "--yes", "--signer", authority.Identity), "and not by "+authority.Identity, "--issuer")
	s.says(s.run(4, "add", s.ref(":v1"), "--yes", "--signer", authority.Identity+"0", "--issuer", authority.Issuer), "and not by")
	s.says(s.run(4, "add", s.ref(":v1"), "--yes", "--signer", authority.Identity, "--issuer", "https://evil.test"), "and not by")
	s.run(0, "add", s.ref(":v1"), "--yes", "--attach", "--signer", authority.Identity, "--issuer", authority.Issuer)
	lockFile := filepath.Join(s.dir, "state", "packs.lock.json")
	data, err := os.ReadFile(lockFile)
	if err != nil {
		t.Fatal(err)
	}
	var l struct {
		Packs map[string]struct {
			Pin       string
			Signature map[string]string
		}
	}
	if err := json.Unmarshal(data, &l); err != nil {
		t.Fatal(err)
	}
	e := l.Packs["acme/triage"]
	for key, want := range map[string]string{"kind": "sigstore", "identity": authority.Identity, "issuer": authority.Issuer, "repository": authority.Repository, "ref": authority.Ref, "runner": authority.Runner} {
		if e.Pin != pin || e.Signature[key] != want {
			t.Errorf("the lock file has %v for %s, want %q, and the pin %s, want %s", e.Signature, key, want, e.Pin, pin)
		}
	}
	s.says(s.run(0, "show", "acme/triage"), authority.Identity)
	s.says(s.run(0, "verify"), "same     acme/triage")

	// Only the kept proof proves it.
	proofs, err := filepath.Glob(filepath.Join(s.dir, "state", "sources", ".store", "proofs", "*.json"))
	if err != nil || len(proofs) != 1 {
		t.Fatalf("proofs %q, %v", proofs, err)
	}
	proof, err := os.ReadFile(proofs[0])
	if err != nil {
		t.Fatal(err)
	}
	put := func(path string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(proofs[0], append(bytes.Clone(proof), '\n'))
	s.says(s.run(4, "verify"), "unproven acme/triage", "its proof was changed here")
	put(proofs[0], proof)
	put(lockFile, bytes.Replace(data, []byte("refs/tags/v1\""), []byte("refs/tags/v2\""), 1))
	s.says(s.run(4, "verify"), "unproven acme/triage", "another signer than the lock file says", "refs/tags/v2", "refs/tags/v1")
	put(lockFile, data)
	s.helper("")
	s.says(s.run(4, "verify"), "install packs-mcp-sigstore beside packs-mcp")
	s.take("packs-mcp-sigstore")
	s.run(0, "verify")

	// sync gets the same bytes, and verifies their signature again.
	if err := os.RemoveAll(filepath.Join(s.dir, "state", "sources", "acme")); err != nil {
		t.Fatal(err)
	}
	s.says(s.run(0, "sync"), "fetched  acme/triage")
	s.run(0, "verify")

	// Each time the source changes signers, the question shows the old and the new
	// one below each other.
	config := filepath.Join(s.dir, "config", "config.yaml")
	for i, tt := range []struct {
		name string
		sign func(string) []byte
		want string
	}{
		{"another ref", s.by(authority.Signature{Ref: "refs/tags/attacker"}), "refs/tags/attacker"},
		{"another runner", s.by(authority.Signature{Runner: "self-hosted"}), "self-hosted"},
		{"another repository", s.by(authority.Signature{Repository: "https://github.com/evil/packs"}), "https://github.com/evil/packs"},
		{"a key", s.by(authority.Signature{Key: authority.NewKey(t)}), "This pack is signed with a key"},
		{"nobody", nil, "nobody"},
	} {
		s.publish("v1", fmt.Sprint("other ", i), tt.sign)
		got := s.run(4, "update", "--yes")
		s.says(got, "before "+usualSigner, "now    ", tt.want)
		if now, err := os.ReadFile(lockFile); err != nil || !bytes.Equal(now, data) {
			t.Errorf("%s: the lock file changed: %v", tt.name, err)
		}
		s.says(s.run(4, "add", s.ref(":v1"), "--yes", "--allow-unsigned"), "before "+usualSigner, tt.want)
	}
	// An invalid signature is refused, whatever is allowed.
	for name, sign := range map[string]func(string) []byte{
		"another artifact": s.by(authority.Signature{Digest: pin}),
		"another authority": func(digest string) []byte {
			return authority.JSON(t, authority.New(t).Attest(t, authority.Signature{Digest: digest}))
		},
		"rubbish": func(string) []byte { return []byte("rubbish") },
	} {
		s.publish("v1", "bad: "+name, sign)
		for _, args := range [][]string{{"update", "--yes", "--allow-signer-change"}, {"add", s.ref(":v1"), "--yes", "--allow-unsigned"}, {"add", s.ref(":v1"), "--as", "other", "--yes", "--allow-unsigned"}} {
			s.says(s.run(4, args...), "the signature does not fit")
		}
	}
	// The same signer continues.
	s.publish("v1", "two", s.by(authority.Signature{}))
	s.run(0, "update", "--yes")
	s.run(0, "verify")
	s.run(0, "update", "--undo", "--yes", "acme/triage")
	s.run(0, "verify") // the proof of the previous version is kept

	// A project's lock file is only the project's claim.
	s.write("project/.git/HEAD", "ref: refs/heads/main\n")
	s.write("project/.packs/evil/triage/SKILL.md", "---\nname: triage\ndescription: Sorts issues.\n---\nevil\n")
	s.write("project/packs.lock.json", strings.ReplaceAll(string(data), `"acme/triage":`, `"evil/triage":`))
	s.says(s.run(0, "show", "evil/triage", "--project", filepath.Join(s.dir, "project")), "by (so says the project's packs.lock.json) "+authority.Identity)

	// Without the authorities that vouch for it, the signer is unknown.
	put(config, []byte("sources:\n  private: [127.0.0.1]\n"))
	s.says(s.run(4, "verify"), "the signature does not fit")
	s.says(s.run(4, "add", s.ref(":v1"), "--as", "third", "--yes", "--allow-unsigned"), "the signature does not fit")
}

// Without the program, a signature does not count, and somebody has to accept that.
func testSigstoreProgram(t *testing.T, s *signing) {
	s.publish("v1", "one", s.by(authority.Signature{}))
	// Programs of this name elsewhere (the working folder, PATH, HOME) are not
	// started.
	ran := filepath.Join(s.dir, "ran")
	for _, dir := range []string{"", "bin/", ".local/bin/", "state/"} {
		path := s.write(dir+"packs-mcp-sigstore", "#!/bin/sh\ntouch "+ran+"\n")
		if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	s.helper("")
	s.says(s.run(4, "add", s.ref(":v1"), "--yes"), "not checked: This pack is signed with Sigstore. Install packs-mcp-sigstore beside packs-mcp", "--allow-unsigned")
	s.says(s.run(4, "add", s.ref(":v1"), "--yes", "--allow-unsigned", "--signer", authority.Identity, "--issuer", authority.Issuer), "and not by")
	if _, err := os.Stat(ran); err == nil {
		t.Fatal("a program from elsewhere was started")
	}
	for name, tt := range map[string]struct{ script, want string }{
		"rubbish":          {"echo hello", "is not a verdict"},
		"nothing":          {":", "is not a verdict"},
		"an old verdict":   {`echo '{"version":2,"digest":"sha256:00","bundle":"sha256:00","state":"verified"}'`, "about something else"},
		"another version":  {`echo '{"version":9,"digest":"","bundle":"","state":"verified"}'`, "version 9"},
		"fails":            {"echo broken >&2; exit 1", "broken"},
		"killed":           {"kill -9 $$", "killed"},
		"huge":             {"while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", "more than 65536 bytes"},
		"the question":     {"while read -r line; do echo \"$line\"; done; echo \"$line\"", "is not a verdict"},
		"colors and lines": {`printf '\033[2Jsigned by acme\n' >&2; exit 1`, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.helper(tt.script)
			got := s.run(4, "add", s.ref(":v1"), "--yes", "--allow-unsigned")
			s.says(got, "the signature was not checked", tt.want)
			if strings.Contains(got, "\x1b") {
				t.Errorf("a program's output reached the terminal: %q", got)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "state", "packs.lock.json")); err == nil {
				t.Error("it was added")
			}
		})
	}
	s.t = t
	s.helper("")
	s.run(0, "add", s.ref(":v1"), "--yes", "--allow-unsigned")
	data, err := os.ReadFile(filepath.Join(s.dir, "state", "packs.lock.json"))
	if err != nil || !bytes.Contains(data, []byte(`"unsigned": true`)) || bytes.Contains(data, []byte("signature")) {
		t.Errorf("the lock file is\n%s\n%v", data, err)
	}
	// Once the program is there, the signer can be recorded.
	s.take("packs-mcp-sigstore")
	s.says(s.run(0, "add", s.ref(":v1"), "--yes"), "the same files", "signed   by "+usualSigner)
	s.run(0, "verify")
}

// A key is named once, and kept in the lock file.
func testSigstoreKey(t *testing.T, s *signing) {
	key, other := authority.NewKey(t), authority.NewKey(t)
	pub, otherPub := s.write("cosign.pub", string(authority.PublicPEM(t, key))), s.write("other.pub", string(authority.PublicPEM(t, other)))
	s.publish("v1", "one", s.by(authority.Signature{Key: key}))
	s.says(s.run(4, "add", s.ref(":v1"), "--yes"), "not checked: This pack is signed with a key. Name the file of the public key with --key")
	s.says(s.run(4, "add", s.ref(":v1"), "--yes", "--allow-unsigned", "--key", otherPub), "the signature does not fit")
	s.says(s.run(1, "add", s.ref(":v1"), "--yes", "--key", filepath.Join(s.dir, "root.json")), "it is not one public key")
	s.says(s.run(1, "add", s.ref(":v1"), "--yes", "--key", s.dir), "it is not a file")
	s.run(2, "add", s.ref(":v1"), "--yes", "--key", pub, "--signer", "x")
	s.says(s.run(0, "add", s.ref(":v1"), "--yes", "--key", pub), "signed   by SHA256:")
	s.run(0, "verify")
	// From now on it comes from the lock file.
	s.publish("v1", "two", s.by(authority.Signature{Key: key}))
	s.run(0, "update", "--yes")
	s.run(0, "verify")
	for _, sign := range []func(string) []byte{s.by(authority.Signature{Key: other}), s.by(authority.Signature{}), nil} {
		s.publish("v1", fmt.Sprintf("three %p", sign), sign)
		s.run(4, "update", "--yes")
	}
	s.publish("v1", "four", s.by(authority.Signature{}))
	s.says(s.run(4, "update", "--yes"), "another signer than before", "before SHA256:", "now    "+usualSigner)
	s.says(s.run(4, "add", s.ref(":v1"), "--as", "new", "--yes", "--allow-unsigned", "--key", pub), "the signature does not fit")
}

// An old artifact with its genuine signature is refused by the time of the signature,
// if neither artifact says a version.
func testSigstoreOlder(t *testing.T, s *signing) {
	s.publish("v1", "one", s.by(authority.Signature{Logged: time.Second}))
	two := s.publish("v1", "two", s.by(authority.Signature{Logged: time.Minute}))
	s.run(0, "add", s.ref(":v1"), "--yes")
	lockFile := filepath.Join(s.dir, "state", "packs.lock.json")
	data, err := os.ReadFile(lockFile)
	if err != nil || !bytes.Contains(data, []byte(`"signedAt": "`)) {
		t.Fatalf("the lock file has no time of the signature: %v\n%s", err, data)
	}
	s.publish("v1", "one", nil) // the same artifact, and its signature is still there
	for _, args := range [][]string{{"update", "--yes"}, {"update", "--yes", "--allow-signer-change"}, {"add", s.ref(":v1"), "--yes", "--allow-unsigned"}} {
		s.says(s.run(4, args...), "it is older than what is here", "before time of the signature ", "now    time of the signature ")
	}
	if now, err := os.ReadFile(lockFile); err != nil || !bytes.Equal(now, data) {
		t.Errorf("the lock file changed: %v", err)
	}
	s.says(s.run(0, "update", "--yes", "--allow-older"), "older    than what is here")
	if again := s.publish("v1", "two", nil); again != two {
		t.Fatalf("the artifact is %s, want %s", again, two)
	}
	s.run(0, "update", "--yes")
	s.run(0, "update", "--undo", "--yes", "acme/triage")
	s.run(0, "update", "--yes")
	s.run(0, "verify")
}
