package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/testing/data"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/proto"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
	"github.com/packs-mcp/packs-mcp/test/authority"
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ask makes a complete exchange: a question in, a verdict out.
func ask(t *testing.T, q trust.Question) trust.Verdict {
	t.Helper()
	in, err := q.Ask()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(nil, bytes.NewReader(in), &out, &errs); code != 0 {
		t.Fatalf("status %d: %s", code, &errs)
	}
	v, err := q.Verdict(out.Bytes())
	if err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	return v
}

func keyOf(t *testing.T, pem []byte) string {
	t.Helper()
	key, err := trust.Key(pem)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// usual returns the usual signer, as the lock file records it.
func usual(bundle []byte) *lock.Signature {
	return &lock.Signature{
		Kind: trust.KindSigstore, Identity: authority.Identity, Issuer: authority.Issuer, Repository: authority.Repository,
		Ref: authority.Ref, Runner: authority.Runner, Bundle: digestOf(string(bundle)),
	}
}

func TestVerified(t *testing.T) {
	a := authority.New(t)
	root, digest := a.Root(t, false), digestOf("pack")
	for name, predicate := range map[string]string{"cosign": authority.Sign, "provenance": "https://slsa.dev/provenance/v1"} {
		t.Run(name, func(t *testing.T) {
			b := authority.JSON(t, a.Attest(t, authority.Signature{Digest: digest, Predicate: predicate}))
			want := usual(b)
			for _, w := range []*lock.Signature{nil, want} {
				v := ask(t, trust.Question{Digest: digest, Bundle: b, Root: root, Want: w})
				if v.State != trust.Verified || *v.Signer != *want {
					t.Errorf("verdict %+v, signer %+v, want %+v", v, v.Signer, want)
				}
				if at, err := time.Parse(time.RFC3339, v.Time); err != nil || time.Since(at).Abs() > time.Hour {
					t.Errorf("signed at %q, %v", v.Time, err)
				}
			}
		})
	}
	t.Run("the artifact itself", func(t *testing.T) {
		b := authority.JSON(t, a.SignBytes(t, "me@acme.test", "https://accounts.test", []byte("pack")))
		v := ask(t, trust.Question{Digest: digest, Bundle: b, Root: root})
		if v.State != trust.Verified || trust.Words(v.Signer) != "me@acme.test, https://accounts.test" {
			t.Errorf("verdict %+v, signer %+v", v, v.Signer)
		}
	})
	t.Run("key", func(t *testing.T) {
		key := authority.NewKey(t)
		b, pub := authority.JSON(t, a.Attest(t, authority.Signature{Digest: digest, Key: key})), keyOf(t, authority.PublicPEM(t, key))
		v := ask(t, trust.Question{Digest: digest, Bundle: b, Key: pub})
		if v.State != trust.Verified || v.Signer.Key != trust.Fingerprint(pub) || v.Signer.PublicKey != pub || v.Time != "" {
			t.Errorf("verdict %+v, signer %+v", v, v.Signer)
		}
		if v := ask(t, trust.Question{Digest: digest, Bundle: b}); v.State != trust.NoKey {
			t.Errorf("without a key: %+v", v)
		}
	})
}

// TestPublicService verifies a bundle made by Sigstore's public service, with the embedded
// authorities and certificate log.
func TestPublicService(t *testing.T) {
	b := data.Bundle(t, "sigstore.js@2.0.0-provenance.sigstore.json")
	digest, _ := hex.DecodeString("46d4e2f74c4877316640000a6fdf8a8b59f1e0847667973e9859f774dd31b8f1e0937813b777fb66a2ac67d50540fe34640966eee9fc2ccca387082b4c85cd3c")
	s, at, err := byCertificate(nil, b, verify.WithArtifactDigest("sha512", digest))
	if err != nil {
		t.Fatal(err)
	}
	want := lock.Signature{
		Kind: trust.KindSigstore, Identity: "https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main",
		Issuer: authority.Issuer, Repository: "https://github.com/sigstore/sigstore-js", Ref: "refs/heads/main", Runner: "github-hosted",
	}
	if at != "2023-08-18T16:05:35Z" {
		t.Errorf("signed at %s", at)
	}
	if *s != want {
		t.Errorf("signer %+v, want %+v", *s, want)
	}
	digest[0] ^= 1
	if s, _, err := byCertificate(nil, b, verify.WithArtifactDigest("sha512", digest)); err == nil {
		t.Errorf("another artifact is signed by %+v", s)
	}
}

// TestTampered changes one thing at a time.
func TestTampered(t *testing.T) {
	a, other := authority.New(t), authority.New(t)
	root, digest := a.Root(t, false), digestOf("pack")
	good, another := a.Attest(t, authority.Signature{Digest: digest}), a.Attest(t, authority.Signature{Digest: digestOf("another pack")})
	key, otherKey := authority.NewKey(t), authority.NewKey(t)
	keyed := a.Attest(t, authority.Signature{Digest: digest, Key: key})
	pub := keyOf(t, authority.PublicPEM(t, key))
	change := func(b *protobundle.Bundle, do func(*protobundle.Bundle)) []byte {
		b = proto.Clone(b).(*protobundle.Bundle)
		do(b)
		return authority.JSON(t, b)
	}
	attest := func(s authority.Signature) []byte {
		if s.Digest == "" && s.Payload == "" {
			s.Digest = digest
		}
		return authority.JSON(t, a.Attest(t, s))
	}
	question := func(bundle []byte) trust.Question { return trust.Question{Digest: digest, Bundle: bundle, Root: root} }
	wanting := func(bundle []byte) trust.Question {
		return trust.Question{Digest: digest, Bundle: bundle, Root: root, Want: usual(nil)}
	}
	goodJSON := authority.JSON(t, good)
	for name, tt := range map[string]struct {
		q    trust.Question
		want trust.State
	}{
		"another artifact":              {trust.Question{Digest: digestOf("x"), Bundle: goodJSON, Root: root}, trust.Unfounded},
		"the bundle of another pack":    {question(authority.JSON(t, another)), trust.Unfounded},
		"another identity":              {wanting(attest(authority.Signature{Identity: "https://github.com/evil/packs/.github/workflows/release.yml@refs/tags/v1"})), trust.OtherOne},
		"an identity that begins alike": {wanting(attest(authority.Signature{Identity: authority.Identity + "1"})), trust.OtherOne},
		"another issuer":                {wanting(attest(authority.Signature{Issuer: "https://token.evil.test"})), trust.OtherOne},
		"another repository":            {wanting(attest(authority.Signature{Repository: "https://github.com/evil/packs"})), trust.OtherOne},
		"another ref":                   {wanting(attest(authority.Signature{Ref: "refs/tags/attacker-release"})), trust.OtherOne},
		"another runner":                {wanting(attest(authority.Signature{Runner: "self-hosted"})), trust.OtherOne},
		"another authority":             {question(authority.JSON(t, other.Attest(t, authority.Signature{Digest: digest}))), trust.Unfounded},
		"logged after the certificate":  {question(attest(authority.Signature{Logged: 11 * time.Minute})), trust.Unfounded},
		"logged before the certificate": {question(attest(authority.Signature{Logged: -time.Minute})), trust.Unfounded},
		"not in the log":                {question(change(good, func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil })), trust.Unfounded},
		"the log entry of another": {question(change(good, func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries = another.VerificationMaterial.TlogEntries
		})), trust.Unfounded},
		"no time of the log":      {question(change(good, func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries[0].InclusionPromise = nil })), trust.Unfounded},
		"another time in the log": {question(change(good, func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries[0].IntegratedTime++ })), trust.Unfounded},
		"no proof of the log":     {question(change(good, func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries[0].InclusionProof = nil })), trust.Unfounded},
		"another proof of the log": {question(change(good, func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries[0].InclusionProof.RootHash[0] ^= 1
		})), trust.Unfounded},
		"the certificate of another": {question(change(good, func(b *protobundle.Bundle) {
			b.VerificationMaterial.Content = another.VerificationMaterial.Content
		})), trust.Unfounded},
		"another signature":           {question(change(good, func(b *protobundle.Bundle) { b.GetDsseEnvelope().Signatures[0].Sig[8] ^= 1 })), trust.Unfounded},
		"the signature of another":    {question(change(good, func(b *protobundle.Bundle) { b.GetDsseEnvelope().Signatures = another.GetDsseEnvelope().Signatures })), trust.Unfounded},
		"another statement":           {question(change(good, func(b *protobundle.Bundle) { b.GetDsseEnvelope().Payload = append(b.GetDsseEnvelope().Payload, ' ') })), trust.Unfounded},
		"the statement of this pack":  {question(change(another, func(b *protobundle.Bundle) { b.GetDsseEnvelope().Payload = good.GetDsseEnvelope().Payload })), trust.Unfounded},
		"another type of content":     {question(change(good, func(b *protobundle.Bundle) { b.GetDsseEnvelope().PayloadType = "text/plain" })), trust.Unfounded},
		"no signature":                {question(change(good, func(b *protobundle.Bundle) { b.GetDsseEnvelope().Signatures = nil })), trust.Unfounded},
		"an attestation of another":   {question(attest(authority.Signature{Digest: digestOf("subject")})), trust.Unfounded},
		"an attestation of nothing":   {question(attest(authority.Signature{Payload: `{"_type":"https://in-toto.io/Statement/v1","predicateType":"` + authority.Sign + `","subject":[]}`})), trust.Unfounded},
		"the report of a scanner":     {question(attest(authority.Signature{Predicate: "https://slsa.dev/verification_summary/v1"})), trust.NotForIt},
		"two names":                   {question(attest(authority.Signature{Second: "acme@github.test"})), trust.Unfounded},
		"a name with a line in it":    {question(attest(authority.Signature{Ref: "refs/tags/v1\nsigned by acme"})), trust.Unfounded},
		"a name of other letters":     {question(attest(authority.Signature{Repository: "https://github.com/аcme/packs"})), trust.Unfounded},
		"not in the certificate log":  {trust.Question{Digest: digest, Bundle: goodJSON, Root: a.Root(t, true)}, trust.Unfounded},
		"not of the public service":   {trust.Question{Digest: digest, Bundle: goodJSON}, trust.Unfounded},
		"another key":                 {trust.Question{Digest: digest, Bundle: authority.JSON(t, keyed), Key: keyOf(t, authority.PublicPEM(t, otherKey))}, trust.Unfounded},
		"a key, and a certificate":    {trust.Question{Digest: digest, Bundle: goodJSON, Key: pub, Root: root}, trust.Unfounded},
		"a key, and another artifact": {trust.Question{Digest: digestOf("x"), Bundle: authority.JSON(t, keyed), Key: pub}, trust.Unfounded},
		"a certificate, and a key wanted": {trust.Question{Digest: digest, Bundle: goodJSON, Root: root,
			Want: &lock.Signature{Kind: trust.KindKey, Key: trust.Fingerprint(pub), PublicKey: pub}}, trust.OtherOne},
		"the hint of another key": {trust.Question{Digest: digest, Key: keyOf(t, authority.PublicPEM(t, otherKey)), Bundle: change(keyed, func(b *protobundle.Bundle) {
			b.VerificationMaterial.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &common.PublicKeyIdentifier{Hint: trust.Fingerprint(pub)}}
		})}, trust.Unfounded},
		"truncated":          {question(goodJSON[:len(goodJSON)-20]), trust.Unfounded},
		"nothing":            {question(nil), trust.Unfounded},
		"an empty object":    {question([]byte(`{}`)), trust.Unfounded},
		"not JSON":           {question([]byte(strings.Repeat("[", 100_000))), trust.Unfounded},
		"a member twice":     {question([]byte(strings.TrimSuffix(string(goodJSON), "}") + `,"mediaType":"x"}`)), trust.Unfounded},
		"of a newer version": {question(bytes.Replace(goodJSON, []byte("v0.3"), []byte("v0.4"), 1)), trust.Unfounded},
	} {
		t.Run(name, func(t *testing.T) {
			v := ask(t, tt.q)
			if v.State != tt.want {
				t.Errorf("verdict %+v, signer %+v, want %q", v, v.Signer, tt.want)
			}
		})
	}
}

// Changing any byte of the signed data is detected.
func TestEachByte(t *testing.T) {
	a := authority.New(t)
	root, digest := a.Root(t, false), digestOf("pack")
	b := a.Attest(t, authority.Signature{Digest: digest})
	for name, field := range map[string][]byte{
		"statement": b.GetDsseEnvelope().Payload, "signature": b.GetDsseEnvelope().Signatures[0].Sig,
		"certificate": b.VerificationMaterial.GetCertificate().RawBytes, "log": b.VerificationMaterial.TlogEntries[0].CanonicalizedBody,
	} {
		for i := 0; i < len(field); i += 7 { // a sample, since each is a complete verification
			field[i] ^= 1
			if v := ask(t, trust.Question{Digest: digest, Bundle: authority.JSON(t, b), Root: root}); v.State == trust.Verified {
				t.Errorf("byte %d of the %s changed: %+v", i, name, v)
			}
			field[i] ^= 1
		}
	}
	if v := ask(t, trust.Question{Digest: digest, Bundle: authority.JSON(t, b), Root: root}); v.State != trust.Verified {
		t.Fatalf("unchanged: %+v", v)
	}
}

// Invalid questions get no verdict.
func TestNoQuestion(t *testing.T) {
	d := digestOf("pack")
	for name, in := range map[string]string{
		"nothing":             ``,
		"rubbish":             `hello`,
		"another version":     `{"version":3,"digest":"` + d + `","bundle":""}`,
		"an unknown member":   `{"version":2,"digest":"` + d + `","bundle":"","trust":true}`,
		"a member twice":      `{"version":2,"digest":"` + d + `","digest":"x","bundle":""}`,
		"another digest":      `{"version":2,"digest":"md5:00","bundle":"e30="}`,
		"a digest of no size": `{"version":2,"digest":"sha256:00","bundle":"e30="}`,
		"two questions":       `{"version":2,"digest":"` + d + `","bundle":""}{}`,
		"too long":            `{"version":2,"digest":"` + strings.Repeat("0", trust.MaxQuestion) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(nil, strings.NewReader(in), &out, io.Discard); code != 1 || out.Len() > 0 {
				t.Errorf("status %d, output %q", code, &out)
			}
		})
	}
	if code := run([]string{"--help"}, strings.NewReader(""), io.Discard, io.Discard); code != 2 {
		t.Errorf("with an argument: status %d", code)
	}
	a := authority.New(t)
	q := trust.Question{Digest: d, Bundle: authority.JSON(t, a.Attest(t, authority.Signature{Digest: d})), Root: []byte(`{}`)}
	in, err := q.Ask()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(nil, bytes.NewReader(in), &out, &errs); code != 1 || !strings.Contains(errs.String(), "the trusted root") {
		t.Errorf("a bad root: status %d, output %q, %s", code, &out, &errs)
	}
}

// A verdict for another question is ignored, so the second program does not decide alone.
func TestOtherVerdicts(t *testing.T) {
	a := authority.New(t)
	d := digestOf("pack")
	q := trust.Question{Digest: d, Bundle: authority.JSON(t, a.Attest(t, authority.Signature{Digest: d})), Root: a.Root(t, false), Want: usual(nil)}
	v, err := judge(q)
	if err != nil {
		t.Fatal(err)
	}
	out, err := q.Answer(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Verdict(out); err != nil {
		t.Fatal(err)
	}
	set := func(key string, value any) []byte {
		var all map[string]any
		if err := json.Unmarshal(out, &all); err != nil {
			t.Fatal(err)
		}
		all[key] = value
		data, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, in := range map[string][]byte{
		"nothing": nil, "rubbish": []byte("ok"), "cut": out[:len(out)-1], "twice": append(bytes.Clone(out), out...),
		"another version": set("version", 3), "an old version": set("version", 1), "no time": set("time", ""), "a malformed time": set("time", "soon"), "another digest": set("digest", digestOf("x")), "another bundle": set("bundle", digestOf("x")),
		"another state": set("state", "fine"), "no signer": set("signer", nil), "a signer, and no signature": set("state", "invalid"),
		"the wanted one as another": set("state", "other-signer"), "an unknown member": set("also", true),
		"another signer":         set("signer", lock.Signature{Kind: trust.KindSigstore, Identity: "me", Issuer: "x"}),
		"a key nobody asked for": set("signer", lock.Signature{Kind: trust.KindKey, Key: "SHA256:x"}),
		"of another kind":        set("signer", lock.Signature{Kind: "ssh", Key: "SHA256:x"}),
	} {
		if v, err := q.Verdict(in); err == nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// The environment influences neither the trusted root nor the rules for certificates.
func TestEnvironment(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := authority.New(t)
	d, dir := digestOf("pack"), t.TempDir()
	root := a.Root(t, false)
	if err := os.WriteFile(dir+"/trusted_root.json", root, 0o600); err != nil {
		t.Fatal(err)
	}
	q := trust.Question{Digest: d, Bundle: authority.JSON(t, a.Attest(t, authority.Signature{Digest: d}))}
	in, err := q.Ask()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = []string{asProgram + "=1", "HOME=" + dir, "SIGSTORE_ROOT_FILE=" + dir + "/trusted_root.json", "SIGSTORE_TRUSTED_ROOT=" + dir + "/trusted_root.json", "TUF_ROOT=" + dir, "TUF_MIRROR=file://" + dir, "SIGSTORE_NO_CACHE=1", "XDG_CACHE_HOME=" + dir}
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if v, err := q.Verdict(out); err != nil || v.State != trust.Unfounded {
		t.Errorf("verdict %+v, %v", v, err)
	}
}

// asProgram makes the test binary act as the program.
const asProgram = "PACKS_MCP_SIGSTORE_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestKeys(t *testing.T) {
	good := authority.PublicPEM(t, authority.NewKey(t))
	for name, text := range map[string]string{
		"nothing": "", "two": string(good) + string(good), "of another kind": strings.ReplaceAll(string(good), "PUBLIC", "PRIVATE"),
		"damaged":     "-----BEGIN PUBLIC KEY-----\n" + base64.StdEncoding.EncodeToString([]byte("x")) + "\n-----END PUBLIC KEY-----\n",
		"a small one": "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf\n9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==\n-----END PUBLIC KEY-----\n",
	} {
		if key, err := trust.Key([]byte(text)); err == nil {
			t.Errorf("%s: %q", name, key)
		}
	}
}
