package card

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
)

// The files load nothing, insert text only as text, and store nothing.
func TestFiles(t *testing.T) {
	const script = `innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|setHTML|srcdoc|eval\(|Function\(|https?:|</|fetch|XMLHttpRequest|WebSocket|import|export|localStorage|sessionStorage|location|keydown|\{\{`
	for name, bad := range map[string]string{
		"card.js":   script,
		"chat.js":   script,
		"card.css":  `url\(|@import|https?:|</|\{\{`,
		"chat.css":  `url\(|@import|https?:|</|\{\{`,
		"chat.html": `(?i)https?://|\ssrc=|\son[a-z]+=|<link|<iframe|<form`,
	} {
		if found := regexp.MustCompile(bad).FindString(text(name)); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
	// The page draws untrusted cards beside its own secrets, so its script talks to no client.
	if found := regexp.MustCompile(`postMessage|parent`).FindString(Script()); found != "" {
		t.Errorf("card.js has %q", found)
	}
	// The server uses the same names.
	if !strings.Contains(text("chat.js"), "KEY = 'packs-mcp/approval'") {
		t.Error("chat.js looks for questions under another key")
	}
}

// The document's own policy allows exactly its two scripts.
func TestChat(t *testing.T) {
	chat := Chat()
	if strings.Contains(chat, "{{") {
		t.Error("the document is not filled in")
	}
	scripts := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(chat, -1)
	if len(scripts) != 2 || strings.Count(chat, "<script") != 2 {
		t.Fatalf("the document has %d scripts, want 2", len(scripts))
	}
	want := "default-src 'none'; script-src"
	for _, s := range scripts {
		sum := sha256.Sum256([]byte(s[1]))
		want += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(chat)
	if policy == nil || !strings.HasPrefix(policy[1], want+"; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'") {
		t.Errorf("the policy is %q, want it to begin with %q", policy, want)
	}
	if len(chat) > 64<<10 {
		t.Errorf("the document has %d bytes", len(chat))
	}
}
