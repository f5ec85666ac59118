package schema

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// IsSecret reports whether the value called name is a secret: it is in secrets, which is
// sorted, or has the name of a secret.
func IsSecret(secrets []string, name string) bool {
	_, found := slices.BinarySearch(secrets, name)
	return found || redact.SensitiveName(name)
}

// collectSecrets collects the names of properties that are declared secret, in every part
// of the schema.
func (in *Input) collectSecrets(n *strictjson.Node, secrets map[*strictjson.Node]bool) {
	if props := n.Get("properties"); props != nil && props.Kind == strictjson.Object {
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

// secretSchemas returns the schemas in root that contain a part declared secret. It goes
// from those parts to the schemas around them, since there may be too many paths in the
// other direction.
func secretSchemas(root *strictjson.Node) map[*strictjson.Node]bool {
	leading := make(map[*strictjson.Node][]*strictjson.Node) // :: schema → the schemas that contain it
	secret := make(map[*strictjson.Node]bool)
	var todo []*strictjson.Node
	mark := func(s *strictjson.Node) {
		if !secret[s] {
			secret[s] = true
			todo = append(todo, s)
		}
	}
	var walk func(*strictjson.Node)
	walk = func(s *strictjson.Node) {
		if s.Kind == strictjson.Object {
			if s.IsTrue("writeOnly") || s.StringAt("format") == "password" || s.IsTrue("secret") {
				mark(s)
			}
			part := func(n *strictjson.Node) {
				if n != nil && n.Kind == strictjson.Object {
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
