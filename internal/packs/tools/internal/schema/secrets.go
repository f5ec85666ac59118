package schema

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/jsontree"
	"github.com/packs-mcp/packs-mcp/internal/redact"
)

// IsSecret reports whether the value called name is one of the secrets, which
// are sorted, or one going by its name.
func IsSecret(secrets []string, name string) bool {
	_, found := slices.BinarySearch(secrets, name)
	return found || redact.SensitiveName(name)
}

// collectSecrets gathers the names of properties that are declared secret, in every
// part of the schema.
func (in *Input) collectSecrets(n *jsontree.Node, secrets map[*jsontree.Node]bool) {
	if props := n.Get("properties"); props != nil && props.Kind == jsontree.Object {
		for _, m := range props.Members {
			if secrets[m.Value] {
				in.Declared = append(in.Declared, m.Key)
			}
		}
	}
	for _, child := range n.Children() {
		in.collectSecrets(child, secrets)
	}
}

// secretSchemas returns the schemas in root of which any part says that the
// value is a secret. It goes from those parts to what leads there, as the other
// way round there may be more paths than time.
func secretSchemas(root *jsontree.Node) map[*jsontree.Node]bool {
	leading := make(map[*jsontree.Node][]*jsontree.Node) // :: schema → the schemas it is a part of
	secret := make(map[*jsontree.Node]bool)
	var todo []*jsontree.Node
	mark := func(s *jsontree.Node) {
		if !secret[s] {
			secret[s] = true
			todo = append(todo, s)
		}
	}
	var walk func(*jsontree.Node)
	walk = func(s *jsontree.Node) {
		if s.Kind == jsontree.Object {
			if s.IsTrue("writeOnly") || s.StringAt("format") == "password" || s.IsTrue("secret") {
				mark(s)
			}
			part := func(n *jsontree.Node) {
				if n != nil && n.Kind == jsontree.Object {
					leading[n] = append(leading[n], s)
				}
			}
			part(localRef(root, s))
			part(s.Get("items"))
			for _, key := range []string{"allOf", "anyOf", "oneOf"} {
				if branches := s.Get(key); branches != nil {
					for _, b := range branches.Items {
						part(b)
					}
				}
			}
		}
		for _, child := range s.Children() {
			walk(child)
		}
	}
	walk(root)
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, whole := range leading[s] {
			mark(whole)
		}
	}
	return secret
}
