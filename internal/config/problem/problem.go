// Package problem describes what is wrong with a configuration, and where: in a line of the
// file, in a variable or in a flag. It has the words that all messages share. It checks
// nothing.
package problem

import (
	"fmt"
	"strconv"
	"strings"
)

// A Problem is one thing wrong with a configuration.
type Problem struct {
	Where   string // "config.yaml:3:9", "PACKS_MCP_LOG_LEVEL", "--log-level"
	Key     string // "log.level"; empty if it is not about one key
	Message string // what is wrong and what is allowed
}

func (p Problem) String() string {
	if p.Key == "" {
		return p.Where + ": " + p.Message
	}
	return p.Where + ": " + p.Key + ": " + p.Message
}

// An Error is everything wrong with a configuration: problems in the file by line,
// then in the environment and the flags by name, then values that contradict
// each other.
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

// ShowKey formats a key for a message.
func ShowKey(key string) string {
	if isPlainKey(key) {
		return key
	}
	return Show(key)
}

// isPlainKey reports whether a key can be shown unquoted.
func isPlainKey(key string) bool {
	const most = 80
	return key != "" && len(key) <= most && !strings.ContainsFunc(key, func(r rune) bool {
		return !isLetterOrDigit(r) && !strings.ContainsRune("_.[]-", r)
	})
}

// isLetterOrDigit reports whether a character is one of A to Z, a to z or 0 to 9.
func isLetterOrDigit(r rune) bool {
	return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
}

// Show quotes and shortens text that a person wrote.
func Show(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return strconv.Quote(string(r[:most])) + "…"
	}
	return strconv.Quote(text)
}

// OneOf lists allowed words.
func OneOf(words []string) string {
	if len(words) == 1 {
		return "want " + words[0]
	}
	return fmt.Sprintf("want %s or %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}
