package markdown

import (
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
)

// Defaults is what the frontmatter of a document says about all of its tools. The zero
// value asks for nothing.
type Defaults struct {
	BodyOffset int // offset of the body in the document, in bytes

	ReadOnly, AlwaysAsk, Network bool
	Review                       bool          // a person sees every change before it is applied
	Cache                        string        // cache that each tool keeps between its runs; an invalid name means none
	Timeout                      time.Duration // 1 s to 300 s, longer ones are reduced to that; 0: the configured default
	Modes                        []string
}

// DefaultsOf returns what doc says about the tools in its document.
func DefaultsOf(doc *frontmatter.Document) Defaults {
	is := func(b *bool) bool { return b != nil && *b }
	d := Defaults{
		BodyOffset: doc.BodyOffset, Modes: doc.Modes,
		ReadOnly: is(doc.ReadOnly), AlwaysAsk: is(doc.AlwaysAsk), Network: is(doc.Network), Review: doc.Review, Cache: doc.Cache,
	}
	if doc.Timeout != nil {
		d.Timeout = time.Duration(*doc.Timeout) * time.Second
	}
	return d
}
