package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// variants returns the common spellings of secrets, longest first.
func variants(secrets []string) []string {
	var all []string
	add := func(spelled ...string) {
		for _, s := range spelled {
			if len(s) >= minSecret {
				all = append(all, s)
			}
		}
	}
	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		add(secret, strings.TrimSpace(secret)) // a shell's $(…) strips the line end
		add(string([]rune(secret)))            // JSON replaces invalid UTF-8
		add(inURL(secret)...)
		add(inJSON(secret)...)
		add(inBase64(secret)...)
		add(hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))))
		add(inLines(secret)...)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// shortestPiece is how many characters a part of an encoded secret must have to count
// as the secret: shorter ones occur by chance.
const shortestPiece = 8

// inURL returns secret percent-encoded: with and without the characters that need it
// only in some places, with digits in either case.
func inURL(secret string) []string {
	var all strings.Builder
	for i := range len(secret) {
		if c := secret[i]; c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("-_.~", c) >= 0 {
			all.WriteByte(c)
		} else {
			fmt.Fprintf(&all, "%%%02X", c)
		}
	}
	out := []string{url.QueryEscape(secret), url.PathEscape(secret), all.String()}
	for _, s := range slices.Clone(out) {
		lower := []byte(s)
		for i := 0; i+2 < len(lower); i++ {
			if lower[i] == '%' {
				copy(lower[i+1:], bytes.ToLower(lower[i+1:i+3]))
				i += 2
			}
		}
		out = append(out, string(lower))
	}
	return out
}

// inJSON returns secret as written in JSON, and so in the strings of many languages:
// with the necessary escapes, with "/", HTML's characters or all non-ASCII escaped as
// well, and as JSON within JSON.
func inJSON(secret string) []string {
	html, err := json.Marshal(secret)
	if err != nil {
		panic(err) // a string always encodes
	}
	plain := unquoted(strictjson.Canonical(secret))
	out := []string{plain, unquoted(html), strings.ReplaceAll(plain, "/", `\/`), unquoted(strictjson.Canonical(plain))}
	for _, form := range []string{`\u%04x`, `\u%04X`} {
		var ascii, all strings.Builder
		for _, r := range secret {
			units := []rune{r}
			if r > 0xffff {
				units = []rune{0xd800 + (r-0x10000)>>10, 0xdc00 + (r-0x10000)&0x3ff}
			}
			for _, u := range units {
				fmt.Fprintf(&all, form, u)
			}
			switch {
			case r >= utf8.RuneSelf:
				for _, u := range units {
					fmt.Fprintf(&ascii, form, u)
				}
			default:
				ascii.WriteString(unquoted(strictjson.Canonical(string(r))))
			}
		}
		out = append(out, ascii.String(), all.String())
	}
	return out
}

// unquoted returns a string of JSON without its quotes.
func unquoted(b []byte) string { return string(b[1 : len(b)-1]) }

// inLines returns the lines of a multi-line secret, plain and as tools break its
// base64 into lines.
func inLines(secret string) []string {
	var out []string
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) >= shortestPiece && len(line) < len(secret) {
			out = append(out, line)
		}
	}
	text := base64.StdEncoding.EncodeToString([]byte(secret))
	for _, width := range []int{64, 76} {
		if len(text) <= width {
			continue
		}
		for line := range slices.Chunk([]byte(text), width) {
			if len(line) >= shortestPiece {
				out = append(out, string(line))
			}
		}
	}
	return out
}

// inBase64 returns secret in base64, and the part that every base64 text containing
// it has in common, for each of the three alignments and both alphabets.
func inBase64(secret string) []string {
	// On its own, no character is left out.
	all := []string{base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret))}
	for before := range 3 {
		// The characters at both ends depend on the surrounding bytes, too.
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + secret))
		if before > 0 {
			text = text[before+1:]
		}
		if (before+len(secret))%3 != 0 {
			text = text[:len(text)-1]
		}
		if len(text) >= shortestPiece {
			all = append(all, text, strings.NewReplacer("+", "-", "/", "_").Replace(text))
		}
	}
	return all
}
