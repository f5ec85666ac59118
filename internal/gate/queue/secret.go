package queue

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Secret returns what an answer to the question with this code has to bring when it
// comes from a card in the chat: the code is known to the model, and the rest, of 256
// bits, is not. It holds in this chat and process only.
func (q *Queue) Secret(chat, code string) string {
	h := hmac.New(sha256.New, q.states.key[:])
	h.Write([]byte("packs-mcp approval card v1\x00" + chat + "\x00" + code))
	return code + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// OfSecret returns the code of the question that a secret of a chat is for, and
// reports whether it is a secret that [Queue.Secret] made. The question may have ended.
func (q *Queue) OfSecret(chat, secret string) (code string, ok bool) {
	code, _, _ = strings.Cut(secret, ".")
	if !hmac.Equal([]byte(secret), []byte(q.Secret(chat, code))) {
		return "", false
	}
	return code, true
}
