package strictjson

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Unmarshal reads into v JSON that programs cannot read in two ways: no key is in it twice,
// also where letter case does not count.
func Unmarshal(data []byte, v any) error {
	n, err := Parse(data)
	if err != nil {
		return fmt.Errorf("at byte %d: %s", err.Offset, err.Problem)
	}
	if key := twice(n); key != "" {
		return fmt.Errorf("%q is in it twice", key)
	}
	return json.Unmarshal(data, v)
}

func twice(n *Node) string {
	seen := map[string]bool{}
	for _, m := range n.Members {
		key := strings.ToLower(strings.ToUpper(m.Key)) // as encoding/json folds
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
