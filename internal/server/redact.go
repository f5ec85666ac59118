package server

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// minSecret is the shortest value, in bytes, that is taken out of output:
// shorter ones occur in everything.
const minSecret = 4

// redactedMark stands where a secret value was.
const redactedMark = "[redacted]"

// hide is text without the secret values that are spelled in one of these
// variants. A program that means to can still write one down otherwise.
func hide(text string, variants []string) string {
	for _, v := range variants {
		text = strings.ReplaceAll(text, v, redactedMark)
	}
	return text
}

// variants returns how programs commonly spell secrets, the longest first.
func variants(secrets []string) []string {
	var all []string
	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		all = append(all, secret, url.QueryEscape(secret), url.PathEscape(secret))
		all = append(all, inBase64(secret)...)
		if line := strings.TrimSpace(secret); len(line) >= minSecret {
			all = append(all, line) // a shell's $(…) takes the end of the line off
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// inBase64 returns secret in base64, and what is the same in every base64 text
// that has it in it, for each of the three places where it can begin, in both
// alphabets.
func inBase64(secret string) []string {
	const shortest = 8 // characters: fewer occur by chance
	// By itself, it leaves no character behind.
	all := []string{base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret))}
	for before := range 3 {
		// The characters at both ends depend on what is around, too.
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + secret))
		if before > 0 {
			text = text[before+1:]
		}
		if (before+len(secret))%3 != 0 {
			text = text[:len(text)-1]
		}
		if len(text) >= shortest {
			all = append(all, text, strings.NewReplacer("+", "-", "/", "_").Replace(text))
		}
	}
	return all
}

// whole returns c without the parts of secrets that the gap between its head
// and its tail cuts in two.
func whole(c sandbox.Capture, hidden []string) sandbox.Capture {
	if !c.Truncated() {
		return c
	}
	for _, v := range hidden {
		for n := len(v) - 1; n >= minSecret; n-- {
			if head, cut := bytes.CutSuffix(c.Head, []byte(v[:n])); cut {
				c.Head = slices.Concat(head, []byte(redactedMark))
			}
			if tail, cut := bytes.CutPrefix(c.Tail, []byte(v[len(v)-n:])); cut {
				c.Tail = slices.Concat([]byte(redactedMark), tail)
			}
		}
	}
	return c
}

// loggedArgs is what the audit log keeps of a program's arguments.
func loggedArgs(args, secrets []string) []string {
	hidden := variants(secrets)
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = hide(a, hidden)
	}
	return out
}
