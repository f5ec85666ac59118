package egress

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"testing"
)

// hidden returns a client configuration that hides the server's name behind outer (RFC
// 9849, "Encrypted ClientHello Configuration").
func hidden(t *testing.T, outer string) *tls.Config {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	prefixed := func(b, value []byte) []byte {
		return append(binary.BigEndian.AppendUint16(b, uint16(len(value))), value...)
	}
	contents := []byte{7}                                      // config_id
	contents = binary.BigEndian.AppendUint16(contents, 0x0020) // DHKEM(X25519, HKDF-SHA256)
	contents = prefixed(contents, key.PublicKey().Bytes())     // public_key
	contents = prefixed(contents, []byte{0, 1, 0, 1})          // HKDF-SHA256, AES-128-GCM
	contents = append(contents, 64, byte(len(outer)))          // maximum_name_length, public_name
	contents = append(append(contents, outer...), 0, 0)        // no extensions
	config := prefixed(binary.BigEndian.AppendUint16(nil, 0xfe0d), contents)
	return &tls.Config{ServerName: "evil.com", MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: prefixed(nil, config)}
}
