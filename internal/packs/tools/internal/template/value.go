package template

import (
	"encoding/json"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Render formats a value as the text of an argument.
func Render(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return strictjson.ShortNumber(v.String())
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = Render(e)
		}
		return strings.Join(parts, " ")
	default: // booleans, objects, null
		return string(strictjson.Canonical(v))
	}
}

// IsURL reports whether values after this text become part of a URL.
func IsURL(prefix string) bool {
	return strings.HasPrefix(prefix, "http://") || strings.HasPrefix(prefix, "https://")
}

// PercentEncode encodes everything except the unreserved characters of RFC 3986.
func PercentEncode(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}
