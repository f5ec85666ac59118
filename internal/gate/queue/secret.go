package queue

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Secret returns what an answer to the question with this code must contain if it
// comes from a card in the chat. The model knows the code, but not the rest, which
// has 256 bits. It is valid only in this chat, and in this
// process or in the replicas that have the same keys.
func (q *Queue) Secret(chat, code string) string { return secret(q.states.keys[0], chat, code) }

func secret(key []byte, chat, code string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("packs-mcp approval card v1\x00" + chat + "\x00" + code))
	return code + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// OfSecret returns the code of the question that a chat's secret is for, and reports
// whether [Queue.Secret] made the secret. The question may have ended.
func (q *Queue) OfSecret(chat, given string) (code string, ok bool) {
	code, _, _ = strings.Cut(given, ".")
	for _, key := range q.states.keys {
		if hmac.Equal([]byte(given), []byte(secret(key, chat, code))) {
			return code, true
		}
	}
	return "", false
}
