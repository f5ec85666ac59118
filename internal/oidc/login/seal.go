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
type Box struct{ aead cipher.AEAD }

// NewBox returns a box with a new random key.
func NewBox() (*Box, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the program instead
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Box{aead}, nil
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
	return base64.RawURLEncoding.EncodeToString(b.aead.Seal(nil, nil, text, nil)), nil
}

// Open returns the attempt that text contains, without its URL.
func (b *Box) Open(text string, now time.Time) (*Attempt, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, ErrNotOurs
	}
	plain, err := b.aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, ErrNotOurs
	}
	var c closed
	if err := json.Unmarshal(plain, &c); err != nil {
		return nil, errors.Join(ErrNotOurs, err)
	}
	if !now.Before(c.Until) {
		return nil, ErrLate
	}
	return &Attempt{State: c.State, redirect: c.Redirect, nonce: c.Nonce, verifier: c.Verifier}, nil
}
