package server

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// EN-04: a secret is taken out as it is and as programs commonly write it,
// wherever in a longer text it is.
func TestHide(t *testing.T) {
	const secret = "ghp_Zm9v+/Yg==?x y"
	hidden := variants([]string{secret, "abc", "line\n"})
	for before := range 7 {
		for after := range 4 {
			text := strings.Repeat("u", before) + secret + strings.Repeat("v", after)
			for name, spelled := range map[string]string{
				"plain":             text,
				"url":               url.QueryEscape(text),
				"path":              url.PathEscape(text),
				"base64":            base64.StdEncoding.EncodeToString([]byte(text)),
				"base64, no pad":    base64.RawStdEncoding.EncodeToString([]byte(text)),
				"base64 of URLs":    base64.URLEncoding.EncodeToString([]byte(text)),
				"base64 with colon": base64.StdEncoding.EncodeToString([]byte("user:" + text)),
			} {
				got := hide("<"+spelled+">", hidden)
				if !strings.Contains(got, redactedMark) || strings.Contains(got, secret) {
					t.Errorf("%s, %d before and %d after: hide(%q) = %q", name, before, after, spelled, got)
				}
				if rest := len(got) - len(redactedMark); strings.HasPrefix(name, "base64") && rest > 2+8+4*((before+after+5)/3+2) {
					t.Errorf("%s, %d before and %d after: hide(%q) = %q, which leaves too much", name, before, after, spelled, got)
				}
			}
		}
	}
	if got := hide("abc line", hidden); got != "abc [redacted]" {
		t.Errorf("hide = %q, want short values left and the end of a line not to matter", got)
	}
}

// A secret that is cut in two by what was left out is in neither half.
func TestWhole(t *testing.T) {
	const secret = "0123456789"
	hidden := variants([]string{secret})
	for cut := range len(secret) + 1 {
		c := whole(sandbox.Capture{Head: []byte("head " + secret[:cut]), Tail: []byte(secret[cut:] + " tail"), Dropped: 5, Total: 100}, hidden)
		got := hide(string(c.Bytes()), hidden)
		for n := minSecret; n <= len(secret); n++ {
			if strings.Contains(got, secret[:n]) || strings.Contains(got, secret[len(secret)-n:]) {
				t.Errorf("cut at %d: %q has %d bytes of the secret", cut, got, n)
			}
		}
	}
	c := sandbox.Capture{Head: []byte("all of 0123")}
	if got := whole(c, hidden); fmt.Sprint(got) != fmt.Sprint(c) {
		t.Errorf("whole of what is whole = %v, want it unchanged", got)
	}
}
