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

// Style returns the stylesheet for cards.
func Style() string { return text("card.css") }

// Chat returns the card in a chat: one self-contained document. Its own policy allows only
// its two scripts, and no request.
func Chat() string {
	draw, speak := Script(), text("chat.js")
	return strings.NewReplacer(
		"{{policy}}", "default-src 'none'; script-src "+source(draw)+" "+source(speak)+"; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
		"{{style}}", Style()+text("chat.css"), "{{draw}}", draw, "{{speak}}", speak,
	).Replace(text("chat.html"))
}

// source returns a script's source expression for a content security policy.
func source(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func text(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded in the binary
	}
	return string(b)
}
