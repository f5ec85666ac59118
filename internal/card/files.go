package card

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"strings"
)

//go:embed card.js card.css chat.js chat.css chat.html
var files embed.FS

// Script returns the script that draws a card.
func Script() string { return text("card.js") }

// Style returns the stylesheet of a card.
func Style() string { return text("card.css") }

// Chat returns the card in a chat: one document that loads nothing. Its own policy
// permits its two scripts and no other, and no request to anywhere.
func Chat() string {
	draw, speak := Script(), text("chat.js")
	return strings.NewReplacer(
		"{{policy}}", "default-src 'none'; script-src "+source(draw)+" "+source(speak)+"; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
		"{{style}}", Style()+text("chat.css"), "{{draw}}", draw, "{{speak}}", speak,
	).Replace(text("chat.html"))
}

// source names a script in a content security policy.
func source(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func text(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is in the binary
	}
	return string(b)
}
