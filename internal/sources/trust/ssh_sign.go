package trust

import (
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// SignSSH returns the armored SSH signature of a message, as ssh-keygen -Y sign makes it
// and [SSH] checks it.
func SignSSH(key ssh.Signer, message []byte, namespace string) ([]byte, error) {
	const hash = "sha512"
	sum := sha512.Sum512(message)
	toSign := append([]byte(magic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Digest string }{namespace, "", hash, string(sum[:])})...)
	var sig *ssh.Signature
	var err error
	if a, ok := key.(ssh.AlgorithmSigner); ok && key.PublicKey().Type() == ssh.KeyAlgoRSA {
		sig, err = a.SignWithAlgorithm(rand.Reader, toSign, ssh.KeyAlgoRSASHA512) // not SHA-1
	} else {
		sig, err = key.Sign(rand.Reader, toSign)
	}
	if err != nil {
		return nil, fmt.Errorf("signing with the SSH key: %w", err)
	}
	raw := append([]byte(magic), ssh.Marshal(struct {
		Version                                   uint32
		Key, Namespace, Reserved, Hash, Signature string
	}{1, string(key.PublicKey().Marshal()), namespace, "", hash, string(ssh.Marshal(*sig))})...)
	armored := pem.EncodeToMemory(&pem.Block{Type: sshArmor, Bytes: raw})
	if _, err := SSH(armored, message, namespace); err != nil { // do not publish a signature that would be refused
		return nil, err
	}
	return armored, nil
}
