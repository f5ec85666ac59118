package approve

import (
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A Key is what a person types for an answer. It is the same in every command that
// asks about calls.
type Key struct {
	Letter string
	Label  string // in the prompt, with the letter in brackets
	word   string
}

// KeyOf returns the key for the value of a choice; ok is false if this program does
// not know the value.
func KeyOf(value string) (_ Key, ok bool) {
	switch value {
	case string(queue.Once):
		return Key{"o", "[o]nce", "once"}, true
	case string(queue.Chat):
		return Key{"c", "[c]hat", "chat"}, true
	case string(queue.Always):
		return Key{"a", "[a]lways", "always"}, true
	case queue.Deny.String():
		return Key{"d", "[d]eny", "deny"}, true
	case skipValue:
		return Key{"s", "[s]kip", "skip"}, true
	case quitValue:
		return Key{"q", "[q]uit", "quit"}, true
	default:
		return Key{}, false
	}
}

// Typed reports whether the person typed the key, or its word.
func (k Key) Typed(text string) bool { return isWord(text, k.Letter, k.word) }

// NoneOf returns the message for input that matches none of these keys.
func NoneOf(keys []Key) string {
	letters := make([]string, len(keys))
	for i, k := range keys {
		letters[i] = k.Letter
	}
	last := len(letters) - 1
	if last < 1 {
		return "That is none of the answers."
	}
	return "That is none of the answers. Type " + strings.Join(letters[:last], ", ") + " or " + letters[last] + ", and press Enter."
}
