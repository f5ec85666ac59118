package gate

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A Decision is a person's answer. The zero Decision is a denial.
type Decision string

const (
	Deny Decision = ""     // this call does not happen
	Once Decision = "once" // this exact call, one time
	Chat Decision = "chat" // and the like of it, until the chat ends
)

// deny is how a denial is spelled on the wire and in the log.
const denyWord = "deny"

func (d Decision) String() string {
	if d == Deny {
		return denyWord
	}
	return string(d)
}

// A Choice is one answer a person may give, in the words shown beside it.
type Choice struct {
	Value string // "once", "chat" or "deny"
	Title string
}

// A Question is what a person is asked about one request.
type Question struct {
	// Title says the essential in one line.
	Title string
	// Text is everything the person decides about, complete and escaped; many
	// lines, the first of which is Title.
	Text    string
	Choices []Choice
	// State must come back with the answer, unchanged.
	State   string
	Expires time.Time
}

// An Answer is what came back for a question. Nothing in it is trusted.
type Answer struct {
	// State is the question's state as the client returned it.
	State string
	// Action is "accept", "decline" or "cancel" as in MCP; anything else, the
	// empty string included, is a denial.
	Action string
	// Content is the filled form; an accept needs the field "decision".
	Content any
	// Channel names how the question was asked, for the log: "elicitation".
	Channel string
	// Reason says why there is no answer, when the channel knows: "no answer
	// within 45s". It goes into the log and the denial.
	Reason string
}

// decision reads the form. ok is false when the answer is not one of the
// choices that were offered, and then nothing is allowed.
func (a *Answer) decision(offered []Choice) (d Decision, reason string) {
	switch a.Action {
	case "accept":
	case "decline":
		return Deny, "the person declined"
	case "cancel":
		return Deny, "the question was closed without an answer"
	case "":
		if a.Reason != "" {
			return Deny, a.Reason
		}
		return Deny, "there was no answer"
	default:
		return Deny, "the answer was malformed"
	}
	form, ok := a.Content.(map[string]any)
	if !ok {
		return Deny, "the answer was malformed: no form was filled in"
	}
	value, ok := form["decision"].(string)
	if !ok {
		return Deny, `the answer was malformed: no "decision"`
	}
	for _, c := range offered {
		if c.Value != value {
			continue
		}
		if value == denyWord {
			return Deny, "the person chose to deny"
		}
		return Decision(value), ""
	}
	return Deny, `the answer was malformed: "decision" is none of the choices`
}

// states mints and redeems the tokens that carry a question through a client.
// The key lives as long as the process, so no state outlives it.
type states struct {
	key [32]byte
	// enc is strict: a state with a flipped bit is another text, even where the
	// bit would not reach the decoded bytes.
	enc *base64.Encoding
	now func() time.Time

	mu   sync.Mutex
	open map[string]time.Time // nonce → expiry; an entry is redeemed at most once
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
	errStateForged  = errors.New("the state is not one this server made")
	errStateSpent   = errors.New("the state was used before, or is too old")
	errStateOther   = errors.New("the state belongs to another call, or something about the call changed since the question")
	errTooManyOpen  = errors.New("too many questions wait for an answer")
	errStateMissing = errors.New("an answer came that nobody asked for")
)

func newStates(now func() time.Time) (*states, error) {
	s := &states{enc: base64.RawURLEncoding.Strict(), now: now, open: make(map[string]time.Time)}
	if _, err := rand.Read(s.key[:]); err != nil {
		return nil, fmt.Errorf("making the approval key: %w", err)
	}
	return s, nil
}

// mint returns a state for the call with this digest, good until expires.
func (s *states) mint(call string, expires time.Time) (string, error) {
	nonce := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxOpen {
		now := s.now()
		for n, e := range s.open {
			if now.After(e) {
				delete(s.open, n)
			}
		}
		if len(s.open) >= maxOpen {
			return "", errTooManyOpen
		}
	}
	s.open[nonce] = expires
	body, err := json.Marshal(token{Nonce: nonce, Call: call, Expires: expires.Unix()})
	if err != nil {
		return "", err
	}
	return s.enc.EncodeToString(body) + "." + s.enc.EncodeToString(s.mac(body)), nil
}

// redeem spends a state. Whatever it returns, an authentic state cannot be
// used again.
func (s *states) redeem(state, call string) error {
	if state == "" {
		return errStateMissing
	}
	body, mac, ok := strings.Cut(state, ".")
	if !ok {
		return errStateForged
	}
	rawBody, err1 := s.enc.DecodeString(body)
	rawMAC, err2 := s.enc.DecodeString(mac)
	if err1 != nil || err2 != nil || !hmac.Equal(rawMAC, s.mac(rawBody)) {
		return errStateForged
	}
	var t token
	if err := json.Unmarshal(rawBody, &t); err != nil {
		return errStateForged
	}
	s.mu.Lock()
	expires, open := s.open[t.Nonce]
	delete(s.open, t.Nonce)
	s.mu.Unlock()
	switch {
	case !open, s.now().After(expires), s.now().Unix() > t.Expires:
		return errStateSpent
	case !hmac.Equal([]byte(t.Call), []byte(call)):
		return errStateOther
	}
	return nil
}

func (s *states) mac(body []byte) []byte {
	h := hmac.New(sha256.New, s.key[:])
	h.Write([]byte("packs-mcp approval state v1\x00"))
	h.Write(body)
	return h.Sum(nil)
}

// decode reads exactly one JSON value and keeps numbers as written.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}
