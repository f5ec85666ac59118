// Package authority signs artifacts in tests like Sigstore's public service: it has its
// own certificate authority, log and clock, all in memory.
package authority

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/signature"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"
	"google.golang.org/protobuf/encoding/protojson"
)

// An Authority signs.
type Authority struct {
	virtual *ca.VirtualSigstore // log and clock
	fulcio  *root.FulcioCertificateAuthority
	key     *ecdsa.PrivateKey
}

// New returns an authority that nobody else trusts.
func New(t *testing.T) *Authority {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	check(t, err)
	top, topKey, err := ca.GenerateRootCa()
	check(t, err)
	middle, key, err := ca.GenerateFulcioIntermediate(top, topKey)
	check(t, err)
	return &Authority{virtual: virtual, key: key, fulcio: &root.FulcioCertificateAuthority{
		URI: "https://fulcio.test", Root: top, Intermediates: []*x509.Certificate{middle},
		ValidityPeriodStart: time.Now().Add(-5 * time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour),
	}}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Root returns a trusted_root.json that trusts the authority. With certificateLog, it also
// requires certificates to be in a log; those of this package are in none.
func (a *Authority) Root(t *testing.T, certificateLog bool) []byte {
	t.Helper()
	logs := a.virtual.RekorLogs()
	for id, log := range logs {
		raw, err := hex.DecodeString(id)
		check(t, err)
		log.ID = raw
	}
	ctlogs := map[string]*root.TransparencyLog{}
	if certificateLog {
		for id, log := range a.virtual.CTLogs() {
			raw, err := hex.DecodeString(id)
			check(t, err)
			log.ID, log.BaseURL = raw, "https://ct.test"
			ctlogs[id] = log
		}
	}
	authorities := append(a.virtual.FulcioCertificateAuthorities(), a.fulcio)
	r, err := root.NewTrustedRoot(root.TrustedRootMediaType01, authorities, ctlogs, a.virtual.TimestampingAuthorities(), logs)
	check(t, err)
	data, err := r.MarshalJSON()
	check(t, err)
	return data
}

// A Signature says what to sign, and as whom. Empty fields have the usual values.
type Signature struct {
	Identity, Issuer, Repository, Ref, Runner string

	Second    string        // another identity in the certificate
	Digest    string        // digest of the artifact, "sha256:…"
	Predicate string        // type of the statement
	Payload   string        // the statement itself
	Logged    time.Duration // when the log records it, after the certificate is issued
	Key       *ecdsa.PrivateKey
}

// The usual signer.
const (
	Identity   = "https://github.com/acme/packs/.github/workflows/release.yml@refs/tags/v1"
	Issuer     = "https://token.actions.githubusercontent.com"
	Repository = "https://github.com/acme/packs"
	Ref        = "refs/tags/v1"
	Runner     = "github-hosted"
	Sign       = "https://sigstore.dev/cosign/sign/v1"
)

func or(s *string, usual string) {
	if *s == "" {
		*s = usual
	}
}

// leaf issues a certificate as Fulcio does, for ten minutes.
func (a *Authority) leaf(t *testing.T, s Signature, from time.Time, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	at, err := url.Parse(s.Identity)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(from.UnixNano()), NotBefore: from, NotAfter: from.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if strings.Contains(s.Identity, "://") {
		template.URIs = []*url.URL{at}
	} else {
		template.EmailAddresses = []string{s.Identity}
	}
	if s.Second != "" {
		template.EmailAddresses = append(template.EmailAddresses, s.Second)
	}
	for id, text := range map[int]string{8: s.Issuer, 11: s.Runner, 12: s.Repository, 14: s.Ref} {
		value, err := asn1.MarshalWithParams(text, "utf8")
		check(t, err)
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, id}, Value: value})
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.fulcio.Intermediates[0], key.Public(), a.key)
	check(t, err)
	c, err := x509.ParseCertificate(der)
	check(t, err)
	return c
}

// Attest signs a statement about an artifact: with a certificate of the authority, or
// with a key.
func (a *Authority) Attest(t *testing.T, s Signature) *protobundle.Bundle {
	t.Helper()
	for text, usual := range map[*string]string{&s.Identity: Identity, &s.Issuer: Issuer, &s.Repository: Repository, &s.Ref: Ref, &s.Runner: Runner, &s.Predicate: Sign} {
		or(text, usual)
	}
	or(&s.Payload, Statement(s.Digest, s.Predicate))
	key := s.Key
	if key == nil {
		key = NewKey(t)
	}
	signer, err := signature.LoadDefaultSigner(key)
	check(t, err)
	by, err := dsse.NewEnvelopeSigner(&sigdsse.SignerAdapter{SignatureSigner: signer, Pub: key.Public()})
	check(t, err)
	e, err := by.SignPayload(context.Background(), "application/vnd.in-toto+json", []byte(s.Payload))
	check(t, err)
	raw, err := base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
	check(t, err)
	b := &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: []byte(s.Payload), PayloadType: e.PayloadType, Signatures: []*protodsse.Signature{{Sig: raw}},
		}},
	}
	if s.Key != nil {
		b.VerificationMaterial = &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &common.PublicKeyIdentifier{Hint: "key"}}}
		return b
	}
	from := time.Now().Add(-time.Minute)
	c := a.leaf(t, s, from, key)
	logged := s.Logged
	if logged == 0 {
		logged = time.Minute
	}
	entry, err := a.virtual.GenerateTlogEntry(c, e, raw, from.Add(logged).Unix(), true)
	check(t, err)
	logEntry := a.promise(t, entry.TransparencyLogEntry(), "dsse")
	b.VerificationMaterial = &protobundle.VerificationMaterial{
		Content:     &protobundle.VerificationMaterial_Certificate{Certificate: &common.X509Certificate{RawBytes: c.Raw}},
		TlogEntries: []*rekor.TransparencyLogEntry{logEntry},
	}
	return b
}

// promise adds what the library omits from a log entry: its kind, and the log's signature
// over the time.
func (a *Authority) promise(t *testing.T, e *rekor.TransparencyLogEntry, kind string) *rekor.TransparencyLogEntry {
	t.Helper()
	e.KindVersion = &rekor.KindVersion{Kind: kind, Version: "0.0.1"}
	set, err := a.virtual.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(e.CanonicalizedBody), IntegratedTime: e.IntegratedTime,
		LogIndex: e.LogIndex, LogID: hex.EncodeToString(e.LogId.KeyId),
	})
	check(t, err)
	e.InclusionPromise = &rekor.InclusionPromise{SignedEntryTimestamp: set}
	return e
}

// SignBytes signs an artifact directly, as a person with an e-mail address.
func (a *Authority) SignBytes(t *testing.T, identity, issuer string, artifact []byte) *protobundle.Bundle {
	t.Helper()
	e, err := a.virtual.Sign(identity, issuer, artifact)
	check(t, err)
	content, err := e.SignatureContent()
	check(t, err)
	m := content.MessageSignatureContent()
	v, err := e.VerificationContent()
	check(t, err)
	entries, err := e.TlogEntries()
	check(t, err)
	logEntry := a.promise(t, entries[0].TransparencyLogEntry(), "hashedrekord")
	return &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content:     &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &common.X509CertificateChain{Certificates: []*common.X509Certificate{{RawBytes: v.Certificate().Raw}}}},
			TlogEntries: []*rekor.TransparencyLogEntry{logEntry},
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &common.MessageSignature{
			MessageDigest: &common.HashOutput{Algorithm: common.HashAlgorithm_SHA2_256, Digest: m.Digest()},
			Signature:     m.Signature(),
		}},
	}
}

// Statement returns an in-toto statement about an artifact.
func Statement(digest, predicate string) string {
	data, _ := json.Marshal(map[string]any{ // of texts
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicate, "predicate": map[string]any{},
		"subject": []any{map[string]any{"name": "pack", "digest": map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}}},
	})
	return string(data)
}

// JSON returns a bundle in its published form.
func JSON(t *testing.T, b *protobundle.Bundle) []byte {
	t.Helper()
	data, err := protojson.Marshal(b)
	check(t, err)
	return data
}

// NewKey makes a key.
func NewKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

// PublicPEM returns a public key file in cosign's format.
func PublicPEM(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	check(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
