package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrForged means that an entry was not written with the replicas' keys, or was moved
// from another key.
var ErrForged = errors.New("the store has an entry that no replica wrote")

// Keys are the secret that replicas share: one key, or two while one replaces the
// other. The first is used for writing; all are accepted for reading.
type Keys struct{ secrets [][]byte }

const (
	keySize = 32 // bytes of one secret
	maxKeys = 2
)

// ParseKeys reads one or two keys of 64 hexadecimal digits, with spaces or line feeds
// between them. Errors do not repeat them.
func ParseKeys(text string) (Keys, error) {
	var k Keys
	for word := range strings.FieldsSeq(text) {
		secret, err := hex.DecodeString(word)
		if err != nil || len(secret) != keySize {
			return Keys{}, fmt.Errorf("a key is not %d hexadecimal digits", 2*keySize)
		}
		k.secrets = append(k.secrets, secret)
	}
	if n := len(k.secrets); n == 0 || n > maxKeys {
		return Keys{}, fmt.Errorf("there are %d keys, and one or two are needed", n)
	}
	return k, nil
}

// Derive returns the keys of 32 bytes for one purpose, in the order of k.
func (k Keys) Derive(purpose string) [][]byte {
	all := make([][]byte, len(k.secrets))
	for i, secret := range k.secrets {
		all[i] = derive(secret, purpose)
	}
	return all
}

// States returns the keys for the states that carry questions through clients: the first
// makes them, and all check them.
func (k Keys) States() [][]byte {
	var all [][]byte
	for _, secret := range k.secrets {
		all = append(all, derive(secret, "question states v1"))
	}
	return all
}

// Chat returns the id of the chat of a credential, which is the same on all replicas, as
// lower-case letters and digits. It follows from the first key.
func (k Keys) Chat(credential string) string {
	h := hmac.New(sha256.New, derive(k.secrets[0], "chats v1"))
	h.Write([]byte(credential))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// derive returns the key for one purpose.
func derive(secret []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "packs-mcp "+purpose, keySize)
	if err != nil {
		panic(err) // the length is fine
	}
	return key
}

// sealed is a store whose entries are encrypted and authenticated, each with its key.
type sealed struct {
	Store
	aeads []cipher.AEAD
}

// Seal returns a store whose entries can be read or written only with the keys.
// Someone who can write to the engine can restore an older value of the same key, but
// cannot make up or move a value. Chains are stored unchanged.
func Seal(s Store, k Keys) Store {
	out := &sealed{Store: s}
	for _, secret := range k.secrets {
		block, err := aes.NewCipher(derive(secret, "store entries v1"))
		if err != nil {
			panic(err) // the length is fine
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic(err) // AES is fine
		}
		out.aeads = append(out.aeads, aead)
	}
	return out
}

func (s *sealed) open(e Entry) (Entry, error) {
	for _, aead := range s.aeads {
		if value, err := aead.Open(nil, nil, e.Value, []byte(e.Key)); err == nil {
			e.Value = value
			return e, nil
		}
	}
	return Entry{}, ErrForged
}

func (s *sealed) Get(ctx context.Context, key string) (Entry, error) {
	e, err := s.Store.Get(ctx, key)
	if err != nil {
		return Entry{}, err
	}
	return s.open(e)
}

func (s *sealed) Put(ctx context.Context, key string, value []byte, rev uint64, ttl time.Duration) (uint64, error) {
	return s.Store.Put(ctx, key, s.aeads[0].Seal(nil, nil, value, []byte(key)), rev, ttl)
}

// Watch reports forged entries as gone, without their values.
func (s *sealed) Watch(ctx context.Context, f func(Change)) error {
	return s.Store.Watch(ctx, func(c Change) {
		if !c.Gone && !c.Synced && c.Key != "" {
			e, err := s.open(c.Entry)
			if err != nil {
				c.Gone, c.Value = true, nil
			} else {
				c.Entry = e
			}
		}
		f(c)
	})
}
