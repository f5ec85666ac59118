package tools

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// PortableSchema returns the input schema for tools/list, without features that real
// clients cannot handle. It may accept more than the declared schema, against which
// calls are checked by [Tool.Check].
func (t *Tool) PortableSchema() json.RawMessage { return t.schema().Portable() }

// maxDefaultText is how long a default may be in a signature.
const maxDefaultText = 40

// Signature returns the tool as one line for a model, parameters in declared
// order, like
//
//	open_ticket(title: string, severity?: integer = 3, labels?: string[])
//
// A parameter that comes from the user's context has "= context.url".
func (t *Tool) Signature() string {
	in := t.schema()
	types := schema.NewTypes(in.Root)
	var b strings.Builder
	b.WriteString(t.Name)
	b.WriteByte('(')
	for i, p := range in.Params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(paramName(p.Name))
		if !p.Required {
			b.WriteByte('?')
		}
		b.WriteString(": ")
		b.WriteString(types.Text(p.Schema))
		from := " = "
		if source := t.Sources[p.Name]; source.IsContext() {
			b.WriteString(" = " + source.From)
			from = " or "
		}
		if p.Preset != nil && !schema.IsSecret(in.Secrets, p.Name) {
			if s := defaultText(p.Preset); s != "" {
				b.WriteString(from)
				b.WriteString(s)
			}
		}
	}
	b.WriteByte(')')
	return b.String()
}

func paramName(name string) string {
	plain := name != ""
	for _, r := range name {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			plain = false
		}
	}
	if plain {
		return name
	}
	return strconv.QuoteToASCII(name)
}

func defaultText(n *strictjson.Node) string {
	switch n.Kind {
	case strictjson.Text:
		if len(n.Text) > maxDefaultText {
			return "…"
		}
		return strconv.QuoteToGraphic(n.Text)
	case strictjson.Number:
		return strictjson.ShortNumber(n.Text)
	default:
		s := string(strictjson.Canonical(n.Value()))
		if len(s) > maxDefaultText || strconv.QuoteToGraphic(s) != `"`+strings.ReplaceAll(s, `"`, `\"`)+`"` {
			return "…"
		}
		return s
	}
}
