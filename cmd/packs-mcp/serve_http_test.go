package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/config"
)

// plantPair writes a certificate and its key.
func plantPair(t *testing.T, cert, key string, serial int64, at time.Time) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// A renewed certificate is used without a restart; one that cannot be read does
// not replace the previous one.
func TestRenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.HTTP.TLSCert, cfg.HTTP.TLSKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	var log bytes.Buffer
	now := time.Now().Truncate(time.Second)
	plantPair(t, cfg.HTTP.TLSCert, cfg.HTTP.TLSKey, 1, now)
	conf, err := tlsConfig(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		t.Helper()
		pair, err := conf.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("the certificate is number %d, want 1", got)
	}
	plantPair(t, cfg.HTTP.TLSCert, cfg.HTTP.TLSKey, 2, now.Add(time.Minute))
	if got := serial(); got != 2 {
		t.Errorf("after it was renewed, the certificate is number %d, want 2", got)
	}
	if err := os.WriteFile(cfg.HTTP.TLSCert, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(cfg.HTTP.TLSKey); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := serial(); got != 2 {
			t.Errorf("after it was broken, the certificate is number %d, want 2 still", got)
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("the log says %d times that it cannot be read, want once:\n%s", n, log.String())
	}
}
