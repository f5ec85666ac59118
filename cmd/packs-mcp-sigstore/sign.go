package main

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// The form of a cosign 3 signature: a statement that names the artifact by its digest.
const (
	bundleType    = "application/vnd.dev.sigstore.bundle.v0.3+json"
	statementType = "https://in-toto.io/Statement/v1"
	payloadType   = "application/vnd.in-toto+json"
	signType      = "https://sigstore.dev/cosign/sign/v1"
)

// sign carries out an order. A problem with the user's key or password is returned as the
// product's Problem.
func sign(o trust.Order) (trust.Product, error) {
	digits, ok := strings.CutPrefix(o.Sign, "sha256:")
	if !ok || len(digits) != 64 {
		return trust.Product{}, fmt.Errorf("%q is not a SHA-256 digest", o.Sign)
	}
	key, err := privateKey(o.Key, o.Password)
	if err != nil {
		return trust.Product{Problem: err.Error()}, nil
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return trust.Product{Problem: "the key is of a kind that is not known: it should be ECDSA, Ed25519 or RSA"}, nil
	}
	public := base64.StdEncoding.EncodeToString(der)
	if _, err := trust.PublicKey(public); err != nil {
		return trust.Product{Problem: err.Error()}, nil
	}
	signer, err := signature.LoadDefaultSigner(key)
	if err != nil {
		return trust.Product{Problem: err.Error()}, nil
	}
	type subject struct {
		Digest map[string]string `json:"digest"`
	}
	statement, err := json.Marshal(struct {
		Type      string    `json:"_type"`
		Subject   []subject `json:"subject"`
		Predicate struct{}  `json:"predicate"`
		Kind      string    `json:"predicateType"`
	}{Type: statementType, Subject: []subject{{map[string]string{"sha256": digits}}}, Kind: signType})
	if err != nil {
		return trust.Product{}, err
	}
	sig, err := signer.SignMessage(bytes.NewReader(dsse.PAE(payloadType, statement)))
	if err != nil {
		return trust.Product{}, err
	}
	bundle, err := json.Marshal(map[string]any{
		"mediaType":            bundleType,
		"verificationMaterial": map[string]any{"publicKey": map[string]string{"hint": trust.Fingerprint(public)}},
		"dsseEnvelope":         dsse.Envelope{PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(statement), Signatures: []dsse.Signature{{Sig: base64.StdEncoding.EncodeToString(sig)}}},
	})
	return trust.Product{Bundle: bundle, Key: public}, err
}

// privateKey parses a key in the format of cosign or openssl.
func privateKey(text, password []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	if block == nil || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("it is not one private key as PEM")
	}
	der := block.Bytes
	var key any
	var err error
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		if der, err = encrypted.Decrypt(der, password); err != nil {
			return nil, errors.New("the password does not fit the key")
		}
		key, err = x509.ParsePKCS8PrivateKey(der)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(der)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(der)
	default:
		return nil, fmt.Errorf("%.100q is not a kind of key that is known here: it should be one of cosign, or PRIVATE KEY", block.Type)
	}
	if err != nil {
		return nil, errors.New("the key is damaged")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return signer, nil
}
