package tools

import (
	"slices"
	"strconv"
	"strings"
)

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
	types := typer{root: in.root, memo: make(map[typeAt]string)}
	var b strings.Builder
	b.WriteString(t.Name)
	b.WriteByte('(')
	for i, p := range in.params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(paramName(p.name))
		if !p.required {
			b.WriteByte('?')
		}
		b.WriteString(": ")
		b.WriteString(types.text(p.schema, 0))
		from := " = "
		if _, ok := in.sources[p.name].context(); ok {
			b.WriteString(" = " + in.sources[p.name].From)
			from = " or "
		}
		if p.preset != nil && !isSecret(in.secrets, p.name) {
			if s := defaultText(p.preset); s != "" {
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

func defaultText(n *node) string {
	switch n.kind {
	case kindText:
		if len(n.text) > maxDefaultText {
			return "…"
		}
		return strconv.QuoteToGraphic(n.text)
	case kindNumber:
		return shortNumber(n.text)
	default:
		s := string(canonical(n.value()))
		if len(s) > maxDefaultText || strconv.QuoteToGraphic(s) != `"`+strings.ReplaceAll(s, `"`, `\"`)+`"` {
			return "…"
		}
		return s
	}
}

var typeNames = [...]string{"string", "integer", "number", "boolean", "array", "object", "null"}

// maxTypeText is how long a type may be in a signature; a longer one is "any".
const maxTypeText = 200

// A typer writes the types of one schema.
type typer struct {
	root *node
	memo map[typeAt]string
}

type typeAt struct {
	schema *node
	depth  int
}

// text returns the type of a property: a name of JSON Schema's, "string[]"
// for a list, "a|b" for several, "any" when nothing is said.
func (t typer) text(s *node, depth int) string {
	if s == nil || s.kind != kindObject || depth > 5 {
		return "any"
	}
	at := typeAt{s, depth}
	text, ok := t.memo[at]
	if !ok {
		if text = t.write(s, depth); len(text) > maxTypeText {
			text = "any"
		}
		t.memo[at] = text
	}
	return text
}

func (t typer) write(s *node, depth int) string {
	names := s.strs("type")
	if one := s.str("type"); one != "" {
		names = []string{one}
	}
	if len(names) == 0 {
		if target := localRef(t.root, s); target != nil {
			return t.text(target, depth+1)
		}
		if values := s.get("enum"); values != nil && len(values.items) > 0 && values.items[0].kind == kindText {
			return "string"
		}
		for _, key := range []string{"anyOf", "oneOf"} {
			if branches := s.get(key); branches != nil {
				for _, b := range branches.items {
					names = append(names, strings.Split(t.text(b, depth+1), "|")...)
				}
				slices.Sort(names)
				names = slices.Compact(names)
				if slices.Contains(names, "any") || len(names) == 0 {
					return "any"
				}
				return strings.Join(names, "|")
			}
		}
		return "any"
	}
	for i, name := range names {
		if !slices.Contains(typeNames[:], name) {
			return "any"
		}
		if name == "array" {
			item := t.text(s.get("items"), depth+1)
			if strings.Contains(item, "|") {
				item = "(" + item + ")"
			}
			if item != "any" {
				names[i] = item + "[]"
			}
		}
	}
	return strings.Join(names, "|")
}
