package upstream

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// An SSHD is the real sshd on the loopback interface. The user who runs the test may log in
// with a key.
type SSHD struct {
	Port string
	User string
	Home string // a home folder whose .ssh has the key for logging in and the server's host key

	t   testing.TB
	dir string
	bin string
}

// NewSSHD starts a server.
func NewSSHD(t testing.TB) *SSHD {
	t.Helper()
	bin, err := exec.LookPath("sshd")
	if err != nil {
		bin = "/usr/sbin/sshd"
		if _, err := os.Stat(bin); err != nil {
			Absent(t, "sshd", "not found")
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if me.Uid == "0" { // Debian's service creates it at its start
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			Absent(t, "sshd", err.Error())
		}
	}
	dir := t.TempDir()
	s := &SSHD{t: t, User: me.Username, Home: filepath.Join(dir, "home"), dir: dir, bin: bin}
	if err := os.MkdirAll(s.File(), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Key(filepath.Join(dir, "host"), "ed25519", "")
	s.Key(s.File("id_ed25519"), "ed25519", "")
	s.Allow(s.File("id_ed25519.pub"))
	config := fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPermitRootLogin yes\nPermitUserEnvironment no\nLogLevel ERROR\n",
		filepath.Join(dir, "host"), filepath.Join(dir, "allowed"))
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.serve()
	s.Know(filepath.Join(dir, "host.pub"))
	return s
}

// File returns the path of a file in .ssh of the home folder.
func (s *SSHD) File(name ...string) string {
	return filepath.Join(append([]string{s.Home, ".ssh"}, name...)...)
}

// Key creates a pair of keys: file, and file with .pub.
func (s *SSHD) Key(file, kind, passphrase string) {
	s.t.Helper()
	_ = os.Remove(file)
	if out, err := exec.Command("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", file).CombinedOutput(); err != nil {
		s.t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
}

// Allow makes a public key the only one that may log in.
func (s *SSHD) Allow(public string) {
	s.t.Helper()
	data, err := os.ReadFile(public)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "allowed"), data, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Know rewrites the known hosts: the server has this public key.
func (s *SSHD) Know(public string) {
	s.t.Helper()
	data, err := os.ReadFile(public)
	if err == nil {
		err = os.WriteFile(s.File("known_hosts"), fmt.Appendf(nil, "[127.0.0.1]:%s %s", s.Port, data), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// NewHostKey gives the server another key, of a kind such as "ecdsa". The known hosts stay.
func (s *SSHD) NewHostKey(kind string) { s.Key(filepath.Join(s.dir, "host"), kind, "") }

// URL returns the address of a repository over ssh.
func (s *SSHD) URL(r *Repo) string {
	return "ssh://" + s.User + "@127.0.0.1:" + s.Port + filepath.ToSlash(r.Dir)
}

// serve runs an sshd for each connection, so that no other process can take the port.
func (s *SSHD) serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	_, s.Port, _ = net.SplitHostPort(l.Addr().String())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.one(conn) })
		}
	})
	s.t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
}

func (s *SSHD) one(conn net.Conn) {
	defer conn.Close()
	f, err := conn.(*net.TCPConn).File()
	if err != nil {
		return
	}
	defer f.Close()
	var says strings.Builder
	cmd := exec.Command(s.bin, "-i", "-e", "-f", filepath.Join(s.dir, "config"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f, f, &says
	_ = conn.Close() // the process has its own copy
	if err := cmd.Run(); err != nil && says.Len() > 0 {
		s.t.Logf("sshd: %v: %s", err, says.String())
	}
}
