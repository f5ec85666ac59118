package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong.
type Problem struct {
	Where   string // "config.yaml:3:9", "PACKS_MCP_LOG_LEVEL", "--log-level"
	Key     string // "log.level"; empty when it is not about one key
	Message string // what is wrong and what is allowed
}

func (p Problem) String() string {
	if p.Key == "" {
		return p.Where + ": " + p.Message
	}
	return p.Where + ": " + p.Key + ": " + p.Message
}

// Error is everything that is wrong with a configuration: what the file says
// in the order of its lines, then the environment and the flags by name, then
// values that do not go together.
type Error struct {
	Problems []Problem // at least one
}

// Error returns one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// plainKey matches keys that can be shown as they are.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)

// showKey returns a key as a message shows it.
func showKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return show(key)
}

// show quotes what a person wrote, and shortens it.
func show(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return strconv.Quote(string(r[:most])) + "…"
	}
	return strconv.Quote(text)
}

// oneOf lists allowed words.
func oneOf(words []string) string {
	if len(words) == 1 {
		return "want " + words[0]
	}
	return fmt.Sprintf("want %s or %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}
