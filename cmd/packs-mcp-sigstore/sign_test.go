package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

const signedDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// order carries out an order as the program does.
func order(t *testing.T, o trust.Order) (trust.Product, error) {
	t.Helper()
	data, err := o.Ask()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := answer(bytes.NewReader(data), &out); err != nil {
		return trust.Product{}, err
	}
	return o.Product(out.Bytes())
}

// The program verifies what it signed, but only for that artifact and that key.
func TestSign(t *testing.T) {
	make1 := func(key any, err error) any {
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	for name, key := range map[string]any{
		"P-256":   make1(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)),
		"P-384":   make1(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"RSA":     make1(rsa.GenerateKey(rand.Reader, 2048)),
		"Ed25519": make1(ed, err),
	} {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		locked, err := encrypted.Encrypt(der, []byte("secret"))
		if err != nil {
			t.Fatal(err)
		}
		for kind, o := range map[string]trust.Order{
			"plain":  {Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})},
			"cosign": {Key: pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: locked}), Password: []byte("secret")},
		} {
			o.Sign = signedDigest
			p, err := order(t, o)
			if err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
				continue
			}
			v, err := judge(trust.Question{Digest: signedDigest, Bundle: p.Bundle, Key: p.Key})
			if err != nil || v.State != trust.Verified || v.Signer.Key != trust.Fingerprint(p.Key) {
				t.Errorf("%s, %s: %+v, %v", name, kind, v, err)
			}
			if v, err := judge(trust.Question{Digest: "sha256:" + strings.Repeat("b", 64), Bundle: p.Bundle, Key: p.Key}); err != nil || v.State != trust.Unfounded {
				t.Errorf("%s, %s, another artifact: %+v, %v", name, kind, v, err)
			}
		}
	}
}

func TestSignRefuses(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Skip("this Go makes no small keys")
	}
	der, err := x509.MarshalPKCS8PrivateKey(small)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    trust.Order
		want string
	}{
		"no PEM":         {trust.Order{Sign: signedDigest, Key: []byte("x")}, "not one private key"},
		"another kind":   {trust.Order{Sign: signedDigest, Key: pem.EncodeToMemory(&pem.Block{Type: "PGP PRIVATE KEY", Bytes: []byte("x")})}, "not a kind of key"},
		"damaged":        {trust.Order{Sign: signedDigest, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})}, "damaged"},
		"wrong password": {trust.Order{Sign: signedDigest, Key: pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED COSIGN PRIVATE KEY", Bytes: []byte("{}")})}, "password"},
		"a short key":    {trust.Order{Sign: signedDigest, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}, "RSA needs"},
		"no digest":      {trust.Order{Sign: "sha256:x", Key: []byte("x")}, "not a SHA-256 digest"},
	} {
		if p, err := order(t, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %q", name, p, err, c.want)
		}
	}
}
