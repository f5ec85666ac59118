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
// Without keys from elsewhere, the key lives as long as the process, so no state outlives
// it.
type states struct {
	keys  [][]byte // the first makes, and all are accepted
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
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("making the approval key: %w", err)
	}
	return &states{now: now, share: max(1, maxOpen/people), open: make(map[string]waiting), keys: [][]byte{key}}, nil
}

// mint returns a state for the call with this digest in a person's chat, valid until
// expires, and the nonce that identifies its question.
func (s *states) mint(person, chat, call string, expires time.Time) (state, nonce string, err error) {
	state, nonce, err = s.sign(call, expires)
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
	return state, nonce, nil
}

// sign returns a state that s does not know to be open.
func (s *states) sign(call string, expires time.Time) (state, nonce string, err error) {
	nonce = rand.Text()
	raw, err := json.Marshal(token{Nonce: nonce, Call: call, Expires: expires.Unix()})
	if err != nil {
		return "", "", err
	}
	body := base64.RawURLEncoding.EncodeToString(raw)
	return body + "." + s.mac(s.keys[0], body), nonce, nil
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
	t, err := s.read(state)
	if err != nil {
		return "", err
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

// read returns what an authentic state says.
func (s *states) read(state string) (t token, err error) {
	if state == "" {
		return token{}, ErrNoState
	}
	// Authenticate the text and not what it decodes to: base64 has several texts for
	// the same bytes.
	body, mac, ok := strings.Cut(state, ".")
	if !ok || !s.made(mac, body) {
		return token{}, ErrForged
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(raw, &t) != nil {
		return token{}, ErrForged
	}
	return t, nil
}

// made reports whether one of the keys made a state.
func (s *states) made(mac, body string) bool {
	for _, key := range s.keys {
		if hmac.Equal([]byte(mac), []byte(s.mac(key, body))) {
			return true
		}
	}
	return false
}

// spend voids a state whose question nobody carries any more.
func (s *states) spend(nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, nonce)
}

func (s *states) mac(key []byte, body string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("packs-mcp approval state v1\x00" + body))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
