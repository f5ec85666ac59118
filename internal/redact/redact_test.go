package redact

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

// EN-04: a secret is removed as it is and as programs commonly spell it, anywhere in
// a longer text.
func TestHide(t *testing.T) {
	const secret = "ghp_Zm9v+/Yg==?x y"
	hidden := New(secret, "abc", "line\n")
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
				got := hidden.Hide("<" + spelled + ">")
				if !strings.Contains(got, Mark) || strings.Contains(got, secret) {
					t.Errorf("%s, %d before and %d after: Hide(%q) = %q", name, before, after, spelled, got)
				}
				if rest := len(got) - len(Mark); strings.HasPrefix(name, "base64") && rest > 2+8+4*((before+after+5)/3+2) {
					t.Errorf("%s, %d before and %d after: Hide(%q) = %q, which leaves too much", name, before, after, spelled, got)
				}
			}
		}
	}
	if got := hidden.Hide("abc line"); got != "abc [redacted]" {
		t.Errorf("Hide = %q, want short values left and the end of a line not to matter", got)
	}
}

// A secret that the cut splits is in neither half.
func TestHideCut(t *testing.T) {
	const secret = "0123456789"
	hidden := New(secret)
	for cut := range len(secret) + 1 {
		head, tail := hidden.HideCut([]byte("head "+secret[:cut]), []byte(secret[cut:]+" tail"))
		got := hidden.Hide(string(head) + "\n[5 bytes left out]\n" + string(tail))
		if !strings.HasPrefix(got, "head ") || !strings.HasSuffix(got, " tail") {
			t.Errorf("cut at %d: %q has not what is around", cut, got)
		}
		for n := minSecret; n <= len(secret); n++ {
			if strings.Contains(got, secret[:n]) || strings.Contains(got, secret[len(secret)-n:]) {
				t.Errorf("cut at %d: %q has %d bytes of the secret", cut, got, n)
			}
		}
	}
}
