package configedit

import (
	"errors"
	"strings"

	"gopkg.in/yaml.v3"
)

// YAML is YAML that is only read and written for pasting: its files are not changed.
func YAML() *Format {
	return &Format{
		decode: func(text []byte) (tree map[string]any, err error) { return tree, yaml.Unmarshal(text, &tree) },
		set:    func([]byte, []string, any) ([]byte, error) { return nil, ErrShape },
		remove: func([]byte, []string) ([]byte, error) { return nil, ErrShape },
		write: func(path []string, value any) string {
			var b strings.Builder
			enc := yaml.NewEncoder(&b)
			enc.SetIndent(2)
			if err := errors.Join(enc.Encode(yamlNode(nested(path, value))), enc.Close()); err != nil {
				return ""
			}
			return b.String()
		},
	}
}

// yamlNode keeps the order of an object.
func yamlNode(value any) *yaml.Node {
	var n yaml.Node
	object, ok := value.(Object)
	if !ok {
		_ = n.Encode(value) // words, numbers and truth values
		return &n
	}
	n.Kind = yaml.MappingNode
	for _, m := range object {
		var key yaml.Node
		key.SetString(m.Key)
		n.Content = append(n.Content, &key, yamlNode(m.Value))
	}
	return &n
}
