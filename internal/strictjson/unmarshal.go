package strictjson

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Unmarshal decodes JSON into v. It refuses JSON that programs could read in two ways: an
// object must not have two keys that are equal apart from letter case.
func Unmarshal(data []byte, v any) error {
	n, err := Parse(data)
	if err != nil {
		return fmt.Errorf("at byte %d: %s", err.Offset, err.Problem)
	}
	if key := twice(n); key != "" {
		return fmt.Errorf("key %q occurs twice", key)
	}
	return json.Unmarshal(data, v)
}

func twice(n *Node) string {
	seen := map[string]bool{}
	for _, m := range n.Members {
		key := strings.ToLower(strings.ToUpper(m.Key)) // the way encoding/json folds case
		if seen[key] {
			return m.Key
		}
		seen[key] = true
		if key := twice(m.Value); key != "" {
			return key
		}
	}
	for _, i := range n.Items {
		if key := twice(i); key != "" {
			return key
		}
	}
	return ""
}
