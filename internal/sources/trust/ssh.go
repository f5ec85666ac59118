// Package trust finds out who signed something, as far as that is possible offline: it
// checks SSH signatures of git tags, commits and files, and makes SSH signatures of
// files. It also has the messages to and from the program for Sigstore bundles.
//
// It does not know which signer is the right one: the lock file remembers the previous
// signer, and a person decides the first time.
package trust

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// sshArmor is the type of the armor around an SSH signature (PROTOCOL.sshsig of
// OpenSSH).
const sshArmor = "SSH SIGNATURE"

// magic begins both the signature and what is signed.
const magic = "SSHSIG"

// Namespaces keep a signature made for one purpose from counting for another.
const (
	NamespaceGit  = "git"
	NamespaceFile = "file"
)

// ErrNotSSH says that a signature is of another kind.
var ErrNotSSH = errors.New("it is not an SSH signature")

// SSH checks an armored SSH signature of a message and returns the fingerprint of the
// key that made it, such as "SHA256:…".
func SSH(armored, message []byte, namespace string) (fingerprint string, err error) {
	block, rest := pem.Decode(armored)
	if block == nil || block.Type != sshArmor {
		return "", ErrNotSSH
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return "", errors.New("something comes after the signature")
	}
	raw, ok := bytes.CutPrefix(block.Bytes, []byte(magic))
	if !ok {
		return "", errors.New("the signature is damaged")
	}
	var s struct {
		Version   uint32
		Key       string
		Namespace string
		Reserved  string
		Hash      string
		Signature string
	}
	if err := ssh.Unmarshal(raw, &s); err != nil || s.Version != 1 {
		return "", errors.New("the signature is damaged, or of a newer kind")
	}
	if s.Namespace != namespace {
		return "", fmt.Errorf("the signature is for %q, and not for %q", s.Namespace, namespace)
	}
	var digest []byte
	switch s.Hash {
	case "sha256":
		sum := sha256.Sum256(message)
		digest = sum[:]
	case "sha512":
		sum := sha512.Sum512(message)
		digest = sum[:]
	default:
		return "", fmt.Errorf("the signature uses %q, which is not known", s.Hash)
	}
	key, err := ssh.ParsePublicKey([]byte(s.Key))
	if err != nil {
		return "", fmt.Errorf("the key of the signature is damaged: %w", err)
	}
	var sig ssh.Signature
	if err := ssh.Unmarshal([]byte(s.Signature), &sig); err != nil {
		return "", errors.New("the signature is damaged")
	}
	if sig.Format == ssh.KeyAlgoRSA { // SHA-1
		return "", errors.New("the signature uses SHA-1")
	}
	signed := append([]byte(magic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Digest string }{s.Namespace, s.Reserved, s.Hash, string(digest)})...)
	if err := key.Verify(signed, &sig); err != nil {
		return "", errors.New("the signature does not fit: somebody changed what was signed")
	}
	return ssh.FingerprintSHA256(key), nil
}
