package gate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// states mints and redeems the tokens that carry a question through a client.
// The key lives as long as the process, so no state outlives it.
type states struct {
	key [32]byte
	now func() time.Time

	mu   sync.Mutex
	open map[string]waiting // :: nonce → its question; an entry is redeemed at most once
}

// waiting is a question that may still be answered.
type waiting struct {
	chat    string
	expires time.Time
}

// maxOpen bounds the questions that may wait at once, so that a client which
// never answers cannot fill the memory.
const maxOpen = 4096

type token struct {
	Nonce   string `json:"n"`
	Call    string `json:"c"`
	Expires int64  `json:"e"` // Unix seconds
}

var (
	errStateMissing = errors.New("an answer came that nobody asked for")
	errStateForged  = errors.New("the state is not one this server made")
	errStateSpent   = errors.New("the state was used before, or is too old")
	errStateOther   = errors.New("the state belongs to another call, or something about the call changed since the question")
)

func newStates(now func() time.Time) (*states, error) {
	s := &states{now: now, open: make(map[string]waiting)}
	if _, err := rand.Read(s.key[:]); err != nil {
		return nil, fmt.Errorf("making the approval key: %w", err)
	}
	return s, nil
}

// mint returns a state for the chat's call with this digest, good until
// expires, and what names its question.
func (s *states) mint(chat, call string, expires time.Time) (state, nonce string, err error) {
	nonce = rand.Text()
	raw, err := json.Marshal(token{Nonce: nonce, Call: call, Expires: expires.Unix()})
	if err != nil {
		return "", "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxOpen {
		s.makeRoom()
	}
	s.open[nonce] = waiting{chat, expires}
	body := base64.RawURLEncoding.EncodeToString(raw)
	return body + "." + s.mac(body), nonce, nil
}

// makeRoom drops what is too old, and when nothing is, the oldest question of
// the chat that has the most: a chat that never answers harms itself only. The
// caller holds the lock.
func (s *states) makeRoom() {
	now := s.now()
	count := make(map[string]int)
	for nonce, w := range s.open {
		if now.After(w.expires) {
			delete(s.open, nonce)
			continue
		}
		count[w.chat]++
	}
	if len(s.open) < maxOpen {
		return
	}
	var greedy string
	for chat, n := range count {
		if n > count[greedy] {
			greedy = chat
		}
	}
	var oldest string
	for nonce, w := range s.open {
		if w.chat == greedy && (oldest == "" || w.expires.Before(s.open[oldest].expires)) {
			oldest = nonce
		}
	}
	delete(s.open, oldest)
}

// forget voids the questions of a chat that has ended.
func (s *states) forget(chat string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for nonce, w := range s.open {
		if w.chat == chat {
			delete(s.open, nonce)
		}
	}
}

// redeem spends a state. Whatever it returns, an authentic state cannot be
// used again; nonce names its question, and is empty when it is not authentic
// or was spent.
func (s *states) redeem(state, call string) (nonce string, err error) {
	if state == "" {
		return "", errStateMissing
	}
	// The text is authenticated, not what it decodes to: base64 has several
	// texts for the same bytes.
	body, mac, ok := strings.Cut(state, ".")
	if !ok || !hmac.Equal([]byte(mac), []byte(s.mac(body))) {
		return "", errStateForged
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return "", errStateForged
	}
	var t token
	if err := json.Unmarshal(raw, &t); err != nil {
		return "", errStateForged
	}
	s.mu.Lock()
	w, open := s.open[t.Nonce]
	delete(s.open, t.Nonce)
	s.mu.Unlock()
	// Both clocks count: the monotonic one, in w.expires, does not go back when
	// somebody sets the time, and the other does not stop while the machine
	// sleeps.
	now := s.now()
	switch {
	case !open, now.After(w.expires), now.Unix() > t.Expires:
		return "", errStateSpent
	case !hmac.Equal([]byte(t.Call), []byte(call)):
		return t.Nonce, errStateOther
	}
	return t.Nonce, nil
}

// spend voids a state whose question nobody carries any more.
func (s *states) spend(nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, nonce)
}

func (s *states) mac(body string) string {
	h := hmac.New(sha256.New, s.key[:])
	h.Write([]byte("packs-mcp approval state v1\x00" + body))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
