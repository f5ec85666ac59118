package signing

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	sshagent "github.com/xanzy/ssh-agent"
	"golang.org/x/crypto/ssh"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/launch"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sources/archive"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/oci"
	"github.com/packs-mcp/packs-mcp/internal/sources/site"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// An Own is a signature that the person makes for what they publish.
type Own struct {
	Data []byte
	By   *lock.Signature
}

// Sign signs what is published, which has this digest, with the key in a file: an SSH
// key, or a key of cosign or openssl, with this password, with which the
// second program signs.
func Sign(ctx context.Context, message []byte, digest, file, password string) (*Own, error) {
	const most = 64 << 10
	text, err := readSmall(file, most)
	if err != nil {
		return nil, fmt.Errorf("reading the key %q: %w", file, err)
	}
	s := &Own{}
	if public, _, _, _, problem := ssh.ParseAuthorizedKey(text); problem == nil {
		err = s.byAgent(message, public)
	} else if bytes.Contains(text, []byte("-----BEGIN OPENSSH PRIVATE KEY-----")) {
		err = s.byFile(message, text)
	} else {
		err = s.bySigstore(ctx, digest, text, password)
	}
	if err != nil {
		return nil, fmt.Errorf("signing with %q: %w", file, err)
	}
	return s, nil
}

// Beside is the signature as a file beside what it is for.
func (s *Own) Beside() site.Signature {
	if s.By.Kind == trust.KindSSH {
		return site.Signature{Suffix: archive.SSHSuffix, Data: s.Data}
	}
	return site.Signature{Suffix: archive.SigstoreSuffix, Data: s.Data}
}

func (s *Own) bySSH(message []byte, key ssh.Signer) (err error) {
	if s.Data, err = trust.SignSSH(key, message, trust.NamespaceFile); err == nil {
		s.By = &lock.Signature{Kind: trust.KindSSH, Key: ssh.FingerprintSHA256(key.PublicKey())}
	}
	return err
}

// byFile signs with a private OpenSSH key.
func (s *Own) byFile(message, text []byte) error {
	key, err := ssh.ParsePrivateKey(text)
	if errors.As(err, new(*ssh.PassphraseMissingError)) {
		return cli.WithHint(errors.New("the key has a passphrase"), "add it to your agent (ssh-add), and name the file of its public key")
	}
	if err != nil {
		return err
	}
	return s.bySSH(message, key)
}

// byAgent asks the user's SSH agent to sign with the key that belongs to public.
func (s *Own) byAgent(message []byte, public ssh.PublicKey) error {
	a, conn, err := sshagent.New()
	if err != nil {
		return fmt.Errorf("this is a public key, and there is no agent: %w", err)
	}
	if conn != nil {
		defer conn.Close()
	}
	keys, err := a.Signers()
	if err != nil {
		return fmt.Errorf("asking the agent for its keys: %w", err)
	}
	for _, key := range keys {
		if bytes.Equal(key.PublicKey().Marshal(), public.Marshal()) {
			return s.bySSH(message, key)
		}
	}
	return cli.WithHint(errors.New("this is a public key, and the agent does not have the private one"), "add it with ssh-add, or name the file of the private key")
}

// bySigstore asks the second program to sign, and verifies the result as it would
// anybody's signature.
func (s *Own) bySigstore(ctx context.Context, digest string, text []byte, password string) error {
	program, err := launch.Beside(trust.Program)
	if errors.Is(err, launch.ErrNotBeside) {
		err = fmt.Errorf("this is no SSH key, and for others %s must be installed beside packs-mcp", trust.Program)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTime, fmt.Errorf("it took longer than %s", checkTime))
	defer cancel()
	order := trust.Order{Sign: digest, Key: text, Password: []byte(password)}
	question, err := order.Ask()
	if err != nil {
		return err
	}
	answer, err := launch.Answer(ctx, program, question, trust.MaxQuestion)
	if err != nil {
		return errors.New(safetext.Line(err.Error()))
	}
	made, err := order.Product(answer)
	if err != nil {
		return errors.New(safetext.Line(err.Error()))
	}
	c := &checker{program: program, key: made.Key, only: true}
	v, err := c.judge(ctx, digest, made.Bundle)
	if err == nil && v.State != trust.Verified {
		err = fmt.Errorf("the signature that was made does not fit: %s", cli.OneLine(v.Reason, 400))
	}
	s.Data, s.By = made.Bundle, v.Signer
	return err
}

// IsThere reports whether the registry already has a signature by the same signer:
// publishing the same pack again adds none.
func (s *Own) IsThere(ctx context.Context, p *oci.Publication) (bool, error) {
	all, err := p.Signed(ctx)
	if err != nil {
		return false, err
	}
	var c *checker
	for _, one := range all {
		switch {
		case one.SSH != nil && one.SSH.Same(s.By):
			return true, nil
		case one.Bundle == nil || s.By.Kind != trust.KindKey:
			continue
		}
		if c == nil {
			program, err := launch.Beside(trust.Program)
			if err != nil {
				return false, err
			}
			c = &checker{program: program, key: s.By.PublicKey, only: true}
		}
		v, err := c.judge(ctx, p.Digest, one.Bundle)
		if err != nil || v.State == trust.Verified {
			return err == nil, err
		}
	}
	return false, nil
}
