package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/kevinburke/ssh_config"
	"github.com/skeema/knownhosts"
	sshagent "github.com/xanzy/ssh-agent"
	"golang.org/x/crypto/ssh"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/userfile"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// go-git's own ssh client connects to any address, waits for ever, and knows no keys
// except an agent's.

// maxKey is the largest file with a key that is read, in bytes.
const maxKey = 64 << 10

// An sshTarget is a host with the user's ssh configuration applied.
type sshTarget struct {
	host, port, user string
	keys             []string // files
}

// target reads ~/.ssh/config. The address overrides what that file says about a host.
func target(w *web.Access, u *url.URL) (sshTarget, error) {
	t := sshTarget{host: u.Hostname(), port: u.Port(), user: u.User.Username()}
	alias := t.host
	get := func(string) []string { return nil }
	if f, err := os.Open(inSSH(w, "config")); err == nil {
		c, err := ssh_config.Decode(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return t, fmt.Errorf("reading %q: %w", inSSH(w, "config"), err)
		}
		get = func(key string) []string {
			all, err := c.GetAll(alias, key)
			if err != nil {
				return nil // the key takes no such value
			}
			return all
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	first := func(key string) string {
		if all := get(key); len(all) > 0 {
			return all[0]
		}
		return ""
	}
	for _, key := range []string{"ProxyJump", "ProxyCommand"} {
		if v := first(key); v != "" && !strings.EqualFold(v, "none") {
			return t, fmt.Errorf("%s is reached through another program or host (%s in %q), which is not supported", alias, key, inSSH(w, "config"))
		}
	}
	t.host = cmp.Or(strings.ReplaceAll(first("Hostname"), "%h", alias), t.host)
	t.port = cmp.Or(t.port, first("Port"), "22")
	t.user = cmp.Or(t.user, first("User"))
	if t.user == "" {
		me, err := user.Current()
		if err != nil {
			return t, err
		}
		t.user = me.Username
	}
	for _, name := range get("IdentityFile") {
		name = strings.ReplaceAll(name, "%d", w.Home)
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join(w.Home, rest)
		}
		t.keys = append(t.keys, name)
	}
	if t.keys == nil {
		t.keys = []string{inSSH(w, "id_ed25519"), inSSH(w, "id_ecdsa"), inSSH(w, "id_rsa")}
	}
	return t, nil
}

// inSSH returns the path of a file in the user's ~/.ssh.
func inSSH(w *web.Access, name string) string { return filepath.Join(w.Home, ".ssh", name) }

// signers returns the keys of the agent and those in files. locked lists files whose
// keys have a passphrase.
func (t sshTarget) signers() (all []ssh.Signer, locked []string, close func()) {
	close = func() {}
	if a, conn, err := sshagent.New(); err == nil {
		if conn != nil {
			close = func() { _ = conn.Close() }
		}
		all, _ = a.Signers() // an agent that does not answer counts as having no keys
	}
	for _, name := range t.keys {
		data, err := userfile.Read(name, maxKey)
		if err != nil {
			continue // missing, or not a key: the server will refuse
		}
		key, err := ssh.ParsePrivateKey(data)
		if errors.As(err, new(*ssh.PassphraseMissingError)) {
			locked = append(locked, name)
		} else if err == nil {
			all = append(all, key)
		}
	}
	return all, locked, close
}

// hostKeys checks a host's key against the files of known hosts.
func hostKeys(w *web.Access, addr string) (*ssh.ClientConfig, error) {
	var files []string
	for _, name := range []string{inSSH(w, "known_hosts"), "/etc/ssh/ssh_known_hosts"} {
		if _, err := os.Stat(name); err == nil {
			files = append(files, name)
		}
	}
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, fmt.Errorf("reading the known hosts: %w", err)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	check := db.HostKeyCallback()
	c := &ssh.ClientConfig{HostKeyCallback: func(name string, at net.Addr, key ssh.PublicKey) error {
		err := check(name, at, key)
		switch {
		case knownhosts.IsHostKeyChanged(err):
			want := []string{}
			for _, k := range db.HostKeys(addr) {
				want = append(want, ssh.FingerprintSHA256(k))
			}
			return &sources.PinError{At: "the key of the host " + host, Want: strings.Join(want, " or "), Got: ssh.FingerprintSHA256(key)}
		case knownhosts.IsHostUnknown(err):
			return &web.HostError{Host: host, Reason: fmt.Sprintf("it is not in %q, and its key is %s; connect to it with ssh once, and compare the key", inSSH(w, "known_hosts"), ssh.FingerprintSHA256(key))}
		}
		return err
	}}
	// A server presents one of its keys: the known one if it still has that, and
	// otherwise another, which the check then names.
	c.HostKeyAlgorithms = db.HostKeyAlgorithms(addr)
	for _, a := range ssh.SupportedAlgorithms().HostKeys {
		if !slices.Contains(c.HostKeyAlgorithms, a) {
			c.HostKeyAlgorithms = append(c.HostKeyAlgorithms, a)
		}
	}
	return c, nil
}

// An sshSession is one run of git-upload-pack on a server. It is for one goroutine.
type sshSession struct {
	run   *ssh.Session
	in    io.WriteCloser
	out   io.Reader
	says  *firstBytes // the server's messages for people
	adv   *packp.AdvRefs
	close func() error
}

// openSSH connects to a server, which must be public like any other, and starts git
// there. Everything ends with ctx.
func openSSH(ctx context.Context, w *web.Access, u *url.URL) (_ transport.UploadPackSession, err error) {
	if w.Home == "" {
		return nil, errors.New("there is no home folder, which says which hosts are known")
	}
	t, err := target(w, u)
	if err != nil {
		return nil, err
	}
	addr := net.JoinHostPort(t.host, t.port)
	config, err := hostKeys(w, addr)
	if err != nil {
		return nil, err
	}
	keys, locked, done := t.signers()
	defer done()
	config.User, config.Auth = t.user, []ssh.AuthMethod{ssh.PublicKeys(keys...)}
	conn, err := w.Dialer(t.host).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	s := &sshSession{says: &firstBytes{max: 4 << 10}, close: sync.OnceValue(func() error {
		stop()
		return conn.Close()
	})}
	defer func() {
		if err != nil {
			_ = s.close()
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
		}
	}()
	known := false
	check := config.HostKeyCallback
	config.HostKeyCallback = func(name string, at net.Addr, key ssh.PublicKey) error {
		err := check(name, at, key)
		known = err == nil
		return err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, addr, config)
	if err != nil {
		if known && len(locked) > 0 {
			return nil, fmt.Errorf("%s does not let %s in (%w); the key in %q has a passphrase: give it to your agent, with ssh-add, and run the command again", t.host, t.user, err, locked[0])
		}
		if known {
			return nil, fmt.Errorf("%s does not let %s in: %w", t.host, t.user, err)
		}
		return nil, err
	}
	s.run, err = ssh.NewClient(c, channels, requests).NewSession()
	if err != nil {
		return nil, err
	}
	return s, s.start(u.Path)
}

// start runs git on the server.
func (s *sshSession) start(path string) (err error) {
	s.run.Stderr = s.says
	if s.in, err = s.run.StdinPipe(); err != nil {
		return err
	}
	out, err := s.run.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = web.Bounded(out)
	return s.run.Start("git-upload-pack '" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'")
}

func (s *sshSession) Close() error { return s.close() }

func (s *sshSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// AdvertisedReferencesContext returns the server's references. Only the session's
// context ends it.
func (s *sshSession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	if s.adv != nil {
		return s.adv, nil
	}
	adv := packp.NewAdvRefs()
	switch err := adv.Decode(s.out); {
	case errors.Is(err, packp.ErrEmptyInput):
		_ = s.run.Wait() // its messages have arrived by then
		return nil, fmt.Errorf("the server has nothing, and says %q", s.says.line())
	case errors.Is(err, packp.ErrEmptyAdvRefs), err == nil && adv.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(adv.Capabilities)
	s.adv = adv
	return adv, nil
}

// UploadPack asks for commits, once.
func (s *sshSession) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if _, err := s.AdvertisedReferencesContext(ctx); err != nil {
		return nil, err
	}
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return nil, err
	}
	if err := req.UploadHaves.Encode(s.in, true); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return nil, err
	}
	if err := s.in.Close(); err != nil {
		return nil, err
	}
	res := packp.NewUploadPackResponse(req)
	if err := res.Decode(struct {
		io.Reader
		io.Closer
	}{s.out, s}); err != nil {
		return nil, fmt.Errorf("%w; the server says %q", err, s.says.line())
	}
	return res, nil
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct {
	max  int
	mu   sync.Mutex // guards data
	data []byte
}

func (b *firstBytes) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p[:min(len(p), b.max-len(b.data))]...)
	return len(p), nil
}

func (b *firstBytes) line() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	line, _, _ := bytes.Cut(bytes.TrimSpace(b.data), []byte("\n"))
	return string(line)
}
