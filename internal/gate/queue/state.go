package queue

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
	key   [32]byte
	now   func() time.Time
	share int // how many open questions one person may have

	mu   sync.Mutex
	open map[string]waiting // :: nonce → its question; each is redeemed at most once
}

// waiting is a question that can still be answered.
type waiting struct {
	person, chat string
	expires      time.Time
}

// maxOpen bounds the number of open questions, so that a client that never answers
// cannot fill the memory. Each person has an equal share of it.
const maxOpen = 4096

type token struct {
	Nonce   string `json:"n"`
	Call    string `json:"c"`
	Expires int64  `json:"e"` // Unix seconds
}

// Errors for a state that does not carry an answer to a question about the call.
var (
	ErrNoState = errors.New("an answer came that nobody asked for")
	ErrForged  = errors.New("the state is not one this server made")
	ErrSpent   = errors.New("the state was used before, or is too old")
	ErrOther   = errors.New("the state belongs to another call, or something about the call changed since the question")
	// ErrTheirs has the same text as ErrOther: it must not reveal whose state it is.
	ErrTheirs = errors.New(ErrOther.Error())
)

// errTooManyStates says that no more questions can be made now.
var errTooManyStates = errors.New("too many questions are open")

// newStates returns states for this many people.
func newStates(now func() time.Time, people int) (*states, error) {
	s := &states{now: now, share: max(1, maxOpen/people), open: make(map[string]waiting)}
	if _, err := rand.Read(s.key[:]); err != nil {
		return nil, fmt.Errorf("making the approval key: %w", err)
	}
	return s, nil
}

// mint returns a state for the call with this digest in a person's chat, valid until
// expires, and the nonce that identifies its question.
func (s *states) mint(person, chat, call string, expires time.Time) (state, nonce string, err error) {
	nonce = rand.Text()
	raw, err := json.Marshal(token{Nonce: nonce, Call: call, Expires: expires.Unix()})
	if err != nil {
		return "", "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(person)
	if len(s.open) >= maxOpen {
		return "", "", errTooManyStates
	}
	s.open[nonce] = waiting{person, chat, expires}
	body := base64.RawURLEncoding.EncodeToString(raw)
	return body + "." + s.mac(body), nonce, nil
}

// makeRoom drops what has expired. If the person still has their full share, it drops
// the oldest question in that person's chat with the most questions: somebody who
// never answers harms only themselves. The caller holds the lock.
func (s *states) makeRoom(person string) {
	if len(s.open) < s.share {
		return
	}
	now := s.now()
	own := 0
	count := make(map[string]int) // :: chat of the person → its questions
	for nonce, w := range s.open {
		switch {
		case now.After(w.expires):
			delete(s.open, nonce)
		case w.person == person:
			count[w.chat]++
			own++
		}
	}
	if own < s.share {
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
		if w.person == person && w.chat == greedy && (oldest == "" || w.expires.Before(s.open[oldest].expires)) {
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

// redeem spends a state that a person's chat returns for the call with this digest.
// An authentic state cannot be used again, whatever redeem returns, unless it belongs
// to somebody else, who can then still answer. nonce identifies its question. It is
// empty if the state is not authentic, was already spent, or belongs to somebody
// else.
func (s *states) redeem(state, person, chat, call string) (nonce string, err error) {
	if state == "" {
		return "", ErrNoState
	}
	// Authenticate the text and not what it decodes to: base64 has several texts for
	// the same bytes.
	body, mac, ok := strings.Cut(state, ".")
	if !ok || !hmac.Equal([]byte(mac), []byte(s.mac(body))) {
		return "", ErrForged
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return "", ErrForged
	}
	var t token
	if err := json.Unmarshal(raw, &t); err != nil {
		return "", ErrForged
	}
	s.mu.Lock()
	w, open := s.open[t.Nonce]
	theirs := open && (w.person != person || w.chat != chat)
	if !theirs {
		delete(s.open, t.Nonce)
	}
	s.mu.Unlock()
	if theirs {
		return "", ErrTheirs
	}
	// Check both clocks: the monotonic one, in w.expires, does not go back when
	// somebody sets the time, and the wall clock does not stop while the machine
	// sleeps.
	now := s.now()
	switch {
	case !open, now.After(w.expires), now.Unix() > t.Expires:
		return "", ErrSpent
	case !hmac.Equal([]byte(t.Call), []byte(call)):
		return t.Nonce, ErrOther
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
