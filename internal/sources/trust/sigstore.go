package trust

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Program is the name of the program that verifies Sigstore bundles. It is a separate
// program because its libraries would double the size of the main one.
const Program = "packs-mcp-sigstore"

// Bounds on messages to and from that program.
const (
	MaxQuestion = 8 << 20
	MaxVerdict  = 64 << 10
)

// protocol is the version of questions and verdicts. Both programs must have the same.
const protocol = 2

// The kinds of a signature that the program verifies.
const (
	KindSigstore = "sigstore" // with a short-lived certificate that names the signer
	KindKey      = "key"      // with a key that the user has
)

// KindSSH is the kind of a signature by an SSH key, which this package verifies itself.
const KindSSH = "ssh"

// A Question asks whether a bundle vouches for an artifact. It has everything that the
// answer depends on: the program reads no file and makes no request.
type Question struct {
	Version int             `json:"version"`
	Digest  string          `json:"digest"`         // of the artifact, "sha256:…"
	Bundle  []byte          `json:"bundle"`         // as it was published
	Key     string          `json:"key,omitempty"`  // in the form of [Key]; only a signature with this key counts
	Root    []byte          `json:"root,omitempty"` // a trusted_root.json that replaces that of Sigstore's public service
	Want    *lock.Signature `json:"want,omitempty"` // the required signer, member by member; nil: any
}

// A State is the result of verifying a bundle.
type State string

// The states. All but the first count as not verified.
const (
	Verified  State = "verified"
	OtherOne  State = "other-signer" // a different signer than wanted
	NoKey     State = "no-key"       // it is signed with a key, but the question has none
	NotForIt  State = "not-for-it"   // a statement that vouches for nothing, such as a list of parts
	Unfounded State = "invalid"      // the signature does not match
)

// A Verdict answers a Question.
type Verdict struct {
	Version int             `json:"version"`
	Digest  string          `json:"digest"` // as in the question
	Bundle  string          `json:"bundle"` // the digest of the bundle in the question
	State   State           `json:"state"`
	Reason  string          `json:"reason,omitempty"` // why it is not verified
	Signer  *lock.Signature `json:"signer,omitempty"` // with Verified and OtherOne
	Time    string          `json:"time,omitempty"`   // when a log or an authority saw the signature, in RFC 3339; of a certificate's only
}

// Ask encodes a question for the program.
func (q Question) Ask() ([]byte, error) {
	q.Version = protocol
	data, err := json.Marshal(q)
	if err == nil && len(data) > MaxQuestion {
		err = errors.New("the signature is too large to be checked")
	}
	return data, err
}

// ParseQuestion reads a question.
func ParseQuestion(data []byte) (Question, error) {
	var q Question
	if err := decode(data, &q); err != nil {
		return q, err
	}
	if q.Version != protocol {
		return q, fmt.Errorf("the question has version %d, and this program knows %d", q.Version, protocol)
	}
	return q, nil
}

// Answer encodes a verdict for the main program.
func (q Question) Answer(v Verdict) ([]byte, error) {
	v.Version, v.Digest, v.Bundle = protocol, q.Digest, sum(q.Bundle)
	return json.Marshal(v)
}

// Verdict reads the answer to the question. An answer to another question, or one that
// accepts an unwanted signer, is an error.
func (q Question) Verdict(data []byte) (Verdict, error) {
	var v Verdict
	if err := decode(data, &v); err != nil {
		return v, fmt.Errorf("its answer is not a verdict: %w", err)
	}
	signed := v.State == Verified || v.State == OtherOne
	switch {
	case v.Version != protocol:
		return v, fmt.Errorf("its answer has version %d, and this program knows %d", v.Version, protocol)
	case v.Digest != q.Digest || v.Bundle != sum(q.Bundle):
		return v, errors.New("its answer is about something else")
	case !slices.Contains([]State{Verified, OtherOne, NoKey, NotForIt, Unfounded}, v.State):
		return v, fmt.Errorf("its answer is %q, which is not known", v.State)
	case signed != (v.Signer != nil):
		return v, errors.New("its answer contradicts itself")
	case !signed:
		return v, nil
	}
	s := v.Signer
	s.Bundle = v.Bundle
	wanted := q.Want == nil || q.Want.Same(s)
	keyed := s.Kind == KindKey && s.PublicKey == q.Key && s.Key == Fingerprint(q.Key) && s.Identity == "" && q.Key != ""
	named := s.Kind == KindSigstore && q.Key == "" && s.PublicKey == "" && s.Key == "" && s.Identity != "" && s.Issuer != ""
	if named != isTime(v.Time) || keyed && v.Time != "" {
		return v, errors.New("its answer has the time of the signature wrong")
	}
	if !keyed && !named || wanted != (v.State == Verified) {
		return v, errors.New("its answer contradicts the question")
	}
	return v, nil
}

// decode reads one JSON value. Unknown and duplicate keys are errors.
func decode(data []byte, to any) error {
	if _, err := strictjson.Parse(data); err != nil {
		return fmt.Errorf("at byte %d: %s", err.Offset, err.Problem)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(s[:])
}

// Key reads a public key in PEM, and returns it in the lock file's form: DER
// (SubjectPublicKeyInfo) in base64.
func Key(text []byte) (string, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
		return "", errors.New(`it is not one public key: it should begin with "-----BEGIN PUBLIC KEY-----", as a cosign.pub does`)
	}
	key := base64.StdEncoding.EncodeToString(block.Bytes)
	_, err := PublicKey(key)
	return key, err
}

// PublicKey parses a key in the lock file's form.
func PublicKey(text string) (any, error) {
	der, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errors.New("the public key is damaged")
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("the public key is damaged")
	}
	switch key := key.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return key, nil
	case *rsa.PublicKey:
		const least = 2048
		if key.N.BitLen() < least {
			return nil, fmt.Errorf("the public key has %d bits, and RSA needs %d", key.N.BitLen(), least)
		}
		return key, nil
	}
	return nil, errors.New("the public key is of a kind that is not known: it should be ECDSA, Ed25519 or RSA")
}

// Fingerprint returns the fingerprint of a key in the lock file's form.
func Fingerprint(key string) string {
	der, err := base64.StdEncoding.Strict().DecodeString(key)
	if err != nil {
		return ""
	}
	s := sha256.Sum256(der)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(s[:])
}
