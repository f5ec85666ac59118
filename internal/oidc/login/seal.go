package login

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Box encrypts attempts as text that nobody else can read or forge. The browser keeps
// its attempt and the server keeps none, so strangers cannot fill its memory by beginning
// attempts. It is safe for concurrent use.
type Box struct{ aeads []cipher.AEAD }

// NewBox returns a box with keys of 32 bytes: the first encrypts, and each decrypts.
// Servers with the same keys open each other's attempts. Without keys it makes a random
// one.
func NewBox(keys ...[]byte) (*Box, error) {
	if len(keys) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails: crypto/rand ends the program instead
		keys = [][]byte{key}
	}
	b := new(Box)
	for _, key := range keys {
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		b.aeads = append(b.aeads, aead)
	}
	return b, nil
}

type closed struct {
	State, Redirect, Nonce, Verifier string
	Until                            time.Time
}

// Close returns an attempt as text that [Box.Open] accepts before until.
func (b *Box) Close(a *Attempt, until time.Time) (string, error) {
	text, err := json.Marshal(closed{a.State, a.redirect, a.nonce, a.verifier, until})
	if err != nil {
		return "", fmt.Errorf("keeping a login: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b.aeads[0].Seal(nil, nil, text, nil)), nil
}

// Open returns the attempt that text contains, without its URL.
func (b *Box) Open(text string, now time.Time) (*Attempt, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, ErrNotOurs
	}
	var c closed
	if err := json.Unmarshal(b.open(sealed), &c); err != nil {
		return nil, errors.Join(ErrNotOurs, err)
	}
	if !now.Before(c.Until) {
		return nil, ErrLate
	}
	return &Attempt{State: c.State, redirect: c.Redirect, nonce: c.Nonce, verifier: c.Verifier}, nil
}

// open decrypts what one of the keys encrypted. It returns nil for anything else.
func (b *Box) open(sealed []byte) []byte {
	for _, aead := range b.aeads {
		if plain, err := aead.Open(nil, nil, sealed, nil); err == nil {
			return plain
		}
	}
	return nil
}
