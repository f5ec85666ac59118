// Package page has the files of the approval page, for the desk on the user's machine and
// for a team's server. Their addresses are relative to that of the page.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/card"
)

//go:embed *.html *.css *.js
var files embed.FS

// Policy is the page's content security policy: nothing from elsewhere, nothing inline, no
// frame around it.
const Policy = "default-src 'none'; script-src 'self'; worker-src 'none'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Guard sets the headers of every answer: its policy, and what keeps other sites and
// caches away from it.
func Guard(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// ForWorker reports whether a browser requests the script of a service worker, to install
// one or to check whether an installed one has changed. The page has none: a worker could
// answer in the person's place.
func ForWorker(r *http.Request) bool {
	return len(r.Header.Values("Service-Worker")) > 0 || slices.Contains(r.Header.Values("Sec-Fetch-Dest"), "serviceworker")
}

// Text returns a file.
func Text(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is in the binary
	}
	return string(text)
}

// Index returns the page. proof is the secret that its script sends with each request, if
// it does not have that in its storage; team says that it is a team's server's.
func Index(proof string, team bool) string {
	more := ""
	if proof != "" {
		more += `<meta name="packs-key" content="` + html.EscapeString(proof) + `">` + "\n"
	}
	if team {
		more += `<meta name="packs-team" content="yes">` + "\n"
	}
	return strings.Replace(Text("index.html"), "{{more}}\n", more, 1)
}

// Asset returns a file that the page loads.
func Asset(name string) (text string, ok bool) {
	switch name {
	case "card.js":
		return card.Script(), true
	case "card.css":
		return card.Style(), true
	case "page.css", "ui.js", "calls.js", "changes.js", "rooms.js", "page.js":
		return Text(name), true
	}
	return "", false
}

// Send sends a text as the kind of file that its name says.
func Send(w http.ResponseWriter, name, text string) {
	kind := "text/html"
	switch path.Ext(name) {
	case ".css":
		kind = "text/css"
	case ".js":
		kind = "text/javascript"
	}
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	_, _ = io.WriteString(w, text)
}

// Style is the page's stylesheet, for pages that have it in them: they cannot fetch it,
// since a browser that sees them is not signed in.
func Style() string { return Text("page.css") }

// Inline is the source by which a content security policy permits exactly this script or
// stylesheet within a page.
func Inline(text string) string {
	digest := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"
}
