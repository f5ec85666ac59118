package git

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// overSSH opens a repository over ssh, as the user whose home the server knows.
func overSSH(t *testing.T, s *upstream.SSHD, text string) (sources.Snapshot, error) {
	t.Helper()
	r, err := address.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return Open(t.Context(), &web.Access{Private: []string{"127.0.0.1"}, Home: s.Home}, r)
}

// A repository and its history are fetched from a real sshd.
func TestSSH(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	s, repo := upstream.NewSSHD(t), upstream.NewRepo(t, nil)
	first := repo.Commit(upstream.Files{"triage/SKILL.md": sourcestest.Document, "triage/scripts/run.sh": "#!/bin/sh\n"})
	snap, err := overSSH(t, s, s.URL(repo))
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err := sourcestest.Fill(t, snap, "triage")
	if err != nil || snap.Pin() != "git:"+first || strings.Join(sourcestest.Paths(tree), " ") != "SKILL.md scripts/run.sh*" {
		t.Errorf("%s has %q, %v", snap.Pin(), sourcestest.Paths(tree), err)
	}
	if err := snap.Close(); err != nil {
		t.Error(err)
	}
	repo.Commit(upstream.Files{"triage/SKILL.md": sourcestest.Document + "More.\n"})
	second, err := overSSH(t, s, s.URL(repo)+"@main")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for old, want := range map[string]bool{first: true, strings.Repeat("1", 40): false} {
		if got, err := second.(sources.Past).Follows(t.Context(), "git:"+old); err != nil || got != want {
			t.Errorf("follows %s: %v, %v, want %v", old, got, err, want)
		}
	}
	if _, err := overSSH(t, s, strings.Replace(s.URL(repo), "packs.git", "none.git", 1)); err == nil || !strings.Contains(err.Error(), "does not appear to be a git repository") {
		t.Errorf("no repository: %v", err)
	}
	if _, err := overSSH(t, s, s.URL(repo)+"@nothing"); err == nil || !strings.Contains(err.Error(), `no branch or tag "nothing"`) {
		t.Errorf("no branch: %v", err)
	}
}

// The user's ~/.ssh/config applies.
func TestSSHConfig(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	s, repo := upstream.NewSSHD(t), upstream.NewRepo(t, nil)
	repo.Commit(upstream.Files{"SKILL.md": sourcestest.Document})
	if err := os.Rename(s.File("id_ed25519"), s.File("work")); err != nil {
		t.Fatal(err)
	}
	write := func(more string) {
		t.Helper()
		text := "Host work\n  Hostname 127.0.0.1\n  Port " + s.Port + "\n  User " + s.User + "\n  IdentityFile ~/.ssh/work\n" + more
		if err := os.WriteFile(s.File("config"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	text := "work:" + filepath.ToSlash(repo.Dir)
	snap, err := overSSH(t, s, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := snap.Close(); err != nil {
		t.Error(err)
	}
	write("  ProxyCommand touch " + filepath.Join(s.Home, "ran") + "\n")
	if _, err := overSSH(t, s, text); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("a ProxyCommand: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Home, "ran")); err == nil {
		t.Error("the ProxyCommand ran")
	}
	write("")
	r, err := address.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), &web.Access{Home: s.Home}, r); !errors.As(err, new(*web.HostError)) {
		t.Errorf("a name for a private address: %v, want a HostError", err)
	}
}

// Unknown hosts, and hosts with a different key than the known one, are refused.
func TestSSHRefuses(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	s, repo := upstream.NewSSHD(t), upstream.NewRepo(t, nil)
	repo.Commit(upstream.Files{"SKILL.md": sourcestest.Document})
	refused := func(what, want string) error {
		t.Helper()
		snap, err := overSSH(t, s, s.URL(repo))
		if err == nil {
			t.Fatalf("%s: %s was fetched", what, snap.Resolved())
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		return err
	}

	r, err := address.Parse(s.URL(repo))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), &web.Access{Home: s.Home}, r); !errors.As(err, new(*web.HostError)) || !strings.Contains(err.Error(), "sources.private") {
		t.Errorf("a private address: %v, want a HostError", err)
	}
	if _, err := Open(t.Context(), &web.Access{Private: []string{"127.0.0.1"}}, r); err == nil {
		t.Error("without a home, whose known hosts count, it was fetched")
	}

	if err := os.Rename(s.File("known_hosts"), s.File("away")); err != nil {
		t.Fatal(err)
	}
	if err := refused("an unknown host", "compare the key"); !errors.As(err, new(*web.HostError)) {
		t.Errorf("an unknown host: %v, want a HostError", err)
	}
	if err := os.Rename(s.File("away"), s.File("known_hosts")); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ed25519", "ecdsa"} {
		s.NewHostKey(kind)
		if err := refused("a changed key, "+kind, "expected SHA256:"); !errors.As(err, new(*sources.PinError)) {
			t.Errorf("a changed key, %s: %v, want a PinError", kind, err)
		}
	}
}

// A key with a passphrase must be in the agent: the error says so, and the agent's key
// is used.
func TestSSHKeys(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	s, repo := upstream.NewSSHD(t), upstream.NewRepo(t, nil)
	repo.Commit(upstream.Files{"SKILL.md": sourcestest.Document})
	s.Key(s.File("id_ed25519"), "ed25519", "secret words")
	s.Allow(s.File("id_ed25519.pub"))
	if _, err := overSSH(t, s, s.URL(repo)); err == nil || !strings.Contains(err.Error(), "ssh-add") || !strings.Contains(err.Error(), "id_ed25519") {
		t.Errorf("a key with a passphrase: %v", err)
	}

	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := agent.NewKeyring()
	key, err := ssh.NewPublicKey(public)
	if err == nil {
		err = keys.Add(agent.AddedKey{PrivateKey: private})
	}
	pub := filepath.Join(s.Home, "agent.pub")
	if err == nil {
		err = os.WriteFile(pub, ssh.MarshalAuthorizedKey(key), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Allow(pub)
	dir, err := os.MkdirTemp("", "agent") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keys, conn) }()
		}
	}()
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(dir, "s"))
	snap, err := overSSH(t, s, s.URL(repo))
	if err != nil {
		t.Fatal(err)
	}
	if err := snap.Close(); err != nil {
		t.Error(err)
	}
}

// A server that accepts and then stays silent is abandoned when the context ends.
func TestSSHSilence(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			cancel()
			_, _ = conn.Read(make([]byte, 1<<20))
			_, _ = conn.Read(make([]byte, 1))
		}
	}()
	r, err := address.Parse("ssh://git@" + l.Addr().String() + "/x.git")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, &web.Access{Private: []string{"127.0.0.1"}, Home: t.TempDir()}, r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want Canceled", err)
	}
}
