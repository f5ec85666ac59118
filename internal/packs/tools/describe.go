package tools

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
)

// maxFilled is how many characters of one context value an example shows.
const maxFilled = 200

// DescriptionFor returns the description for a model, of at most limit characters (0:
// 1,024), followed by as many whole examples as have room. Values from ctx replace
// the {{...}} in the examples; other placeholders stay, and so do those of secrets.
// The result is not escaped.
func (t *Tool) DescriptionFor(ctx Context, limit int) string {
	limit = Limits{Description: limit}.OrDefault().Description
	var b strings.Builder
	b.WriteString(phrase.Cut(strings.TrimSpace(t.Description), limit))
	room := limit - utf8.RuneCountInString(b.String())
	head := "\n\nExamples:"
	for _, example := range t.Examples {
		text := head + "\n" + t.fillExample(strings.TrimSpace(example), ctx)
		n := utf8.RuneCountInString(text)
		if n > room {
			break
		}
		b.WriteString(text)
		room -= n
		head = "\n"
	}
	return b.String()
}

// fillExample puts values from ctx into s. Examples are prose: anything that is not a
// placeholder for a known value is text.
func (t *Tool) fillExample(s string, ctx Context) string {
	in := t.schema()
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		body, after, closed := strings.Cut(rest, "}}")
		value, known := "", false
		if closed {
			value, known = t.contextValue(in, body, ctx)
		}
		if !known {
			b.WriteString("{{")
			s = rest
			continue
		}
		b.WriteString(phrase.Cut(value, maxFilled))
		s = after
	}
}

// contextValue returns the context's value for a placeholder in an example: for a
// parameter that comes from the context, for {{context.url}}, and for {{url}} if no
// parameter has that name.
func (t *Tool) contextValue(in *schema.Input, placeholder string, ctx Context) (string, bool) {
	name, _, _ := strings.Cut(placeholder, ":")
	name = strings.TrimSpace(name)
	key, isContext := t.Sources[name].context()
	if !isContext {
		key, isContext = strings.CutPrefix(name, template.ContextPrefix)
	}
	if !isContext && !t.Knows(name) {
		key, isContext = name, true
	}
	value, ok := ctx[key]
	return value, ok && isContext && !t.secretContext(in, key)
}

// secretContext reports whether a secret parameter comes from this key of the
// context.
func (t *Tool) secretContext(in *schema.Input, key string) bool {
	for name, s := range t.Sources {
		if from, ok := s.context(); ok && from == key && slices.Contains(in.Secrets, name) {
			return true
		}
	}
	return false
}
