package main

import (
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// publicRoot lists the authorities and logs of Sigstore's public service
// (https://github.com/sigstore/root-signing, target trusted_root.json). Each release
// contains the newest; the configuration can name a newer one.
//
//go:embed trusted_root.json
var publicRoot []byte

// vouching lists the types of statements by which someone vouches for an artifact: a cosign
// signature, and its provenance. Others, such as a list of components or a scan result,
// describe an artifact without vouching for it.
var vouching = []string{
	"https://sigstore.dev/cosign/sign/v1",
	"https://slsa.dev/provenance/v0.2",
	"https://slsa.dev/provenance/v1",
}

// judge answers a question. It returns an error if the question cannot be answered.
func judge(q trust.Question) (trust.Verdict, error) {
	digits, ok := strings.CutPrefix(q.Digest, "sha256:")
	digest, err := hex.DecodeString(digits)
	if !ok || err != nil || len(digest) != 32 {
		return trust.Verdict{}, fmt.Errorf("%q is not a SHA-256 digest", q.Digest)
	}
	b := &bundle.Bundle{}
	if err := b.UnmarshalJSON(q.Bundle); err != nil {
		return invalid("it is not a Sigstore bundle: %w", err), nil
	}
	content, err := b.VerificationContent()
	if err != nil {
		return invalid("it does not say who signed: %w", err), nil
	}
	if does, kind, err := vouches(b); err != nil {
		return invalid("its statement cannot be read: %w", err), nil
	} else if !does {
		return trust.Verdict{State: trust.NotForIt, Reason: fmt.Sprintf("it is a statement of the type %.200q", kind)}, nil
	}
	artifact := verify.WithArtifactDigest("sha256", digest)
	if content.Certificate() == nil && q.Key == "" {
		return trust.Verdict{State: trust.NoKey, Reason: "it is signed with a key"}, nil
	}
	var signer *lock.Signature
	at := ""
	if q.Key != "" {
		signer, err = byKey(q.Key, b, artifact)
	} else {
		signer, at, err = byCertificate(q.Root, b, artifact)
	}
	if errors.As(err, new(*questionError)) {
		return trust.Verdict{}, err
	}
	switch {
	case err != nil:
		return invalid("%w", err), nil
	case q.Want != nil && !q.Want.Same(signer):
		return trust.Verdict{State: trust.OtherOne, Reason: "somebody else signed it", Signer: signer, Time: at}, nil
	}
	return trust.Verdict{State: trust.Verified, Signer: signer, Time: at}, nil
}

// A questionError is about the user's input, not about the bundle.
type questionError struct{ error }

func invalid(format string, a ...any) trust.Verdict {
	const most = 500
	text := strings.Join(strings.Fields(fmt.Errorf(format, a...).Error()), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return trust.Verdict{State: trust.Unfounded, Reason: text}
}

// vouches reports whether a bundle vouches for an artifact rather than describing it. kind
// is the type of its statement, if it has one.
func vouches(b *bundle.Bundle) (does bool, kind string, err error) {
	content, err := b.SignatureContent()
	if err != nil {
		return false, "", err
	}
	envelope := content.EnvelopeContent()
	if envelope == nil { // a signature over the artifact itself
		return true, "", nil
	}
	s, err := envelope.Statement()
	if err != nil {
		return false, "", err
	}
	return slices.Contains(vouching, s.PredicateType), s.PredicateType, nil
}

// byKey verifies a signature with the user's key. The key is trusted at any time, so no log
// need contain the signature.
func byKey(text string, b *bundle.Bundle, artifact verify.ArtifactPolicyOption) (*lock.Signature, error) {
	key, err := trust.PublicKey(text)
	if err != nil {
		return nil, &questionError{err}
	}
	verifier, err := signature.LoadDefaultVerifier(key)
	if err != nil {
		return nil, &questionError{err}
	}
	// Use the one key, whatever hint the bundle gives.
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	})
	v, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
	if err != nil {
		return nil, err
	}
	if _, err := v.Verify(b, verify.NewPolicy(artifact, verify.WithKey())); err != nil {
		return nil, err
	}
	return &lock.Signature{Kind: trust.KindKey, Key: trust.Fingerprint(text), PublicKey: text}, nil
}

// byCertificate verifies a signature by a certificate that was valid for minutes. A log or
// a timestamp authority must confirm that the signature was made in that time. It also
// returns that time, in RFC 3339.
func byCertificate(rootJSON []byte, b *bundle.Bundle, artifact verify.ArtifactPolicyOption) (_ *lock.Signature, at string, err error) {
	own := len(rootJSON) > 0
	if !own {
		rootJSON = publicRoot
	}
	material, err := root.NewTrustedRootFromJSON(rootJSON)
	if err != nil {
		return nil, "", &questionError{fmt.Errorf("reading the trusted root: %w", err)}
	}
	// Require only the logs that the service has; the public service has all of them.
	options := []verify.VerifierOption{verify.WithObserverTimestamps(1), verify.WithoutStatementPredicate()}
	if !own || len(material.RekorLogs()) > 0 {
		options = append(options, verify.WithTransparencyLog(1))
	}
	if !own || len(material.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	v, err := verify.NewVerifier(material, options...)
	if err != nil {
		return nil, "", err
	}
	// The caller compares every member of the signer; the library would ignore empty ones.
	result, err := v.Verify(b, verify.NewPolicy(artifact, verify.WithoutIdentitiesUnsafe()))
	if err != nil {
		return nil, "", err
	}
	if result.Signature == nil || result.Signature.Certificate == nil {
		return nil, "", errors.New("it has no certificate")
	}
	if err := oneName(b); err != nil {
		return nil, "", err
	}
	c := result.Signature.Certificate
	s := &lock.Signature{
		Kind: trust.KindSigstore, Identity: c.SubjectAlternativeName, Issuer: c.Issuer,
		Repository: c.SourceRepositoryURI, Ref: c.SourceRepositoryRef, Runner: c.RunnerEnvironment,
	}
	if s.Issuer == "" {
		return nil, "", errors.New("its certificate does not say who identified the signer")
	}
	for _, text := range []string{s.Identity, s.Issuer, s.Repository, s.Ref, s.Runner} {
		if !plain(text) {
			return nil, "", fmt.Errorf("its certificate has the text %.200q, which is not a name", text)
		}
	}
	if len(result.VerifiedTimestamps) == 0 {
		return nil, "", errors.New("it does not say when it was signed")
	}
	first := slices.MinFunc(result.VerifiedTimestamps, func(a, b verify.TimestampVerificationResult) int { return a.Timestamp.Compare(b.Timestamp) })
	return s, first.Timestamp.UTC().Format(time.RFC3339), nil
}

// oneName refuses a certificate that names several signers, since the library would return
// only one of them.
func oneName(b *bundle.Bundle) error {
	content, err := b.VerificationContent()
	if err != nil {
		return err
	}
	c := content.Certificate()
	if n := len(c.URIs) + len(c.EmailAddresses) + len(c.DNSNames) + len(c.IPAddresses); n > 1 {
		return fmt.Errorf("its certificate names %d signers", n)
	}
	return nil
}

// plain reports whether a text can be a name that a person compares: short enough, and
// ASCII, which has no look-alike letters.
func plain(s string) bool {
	const most = 1000
	return len(s) <= most && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
