package audit

import (
	"encoding/json"
	"reflect"

	"github.com/packs-mcp/packs-mcp/internal/tokens"
)

// withoutTokens returns e without what looks like an access token or a private
// key, in all its texts, also those of a member that is added.
func withoutTokens(e Entry) Entry {
	for _, field := range reflect.ValueOf(&e).Elem().Fields() {
		switch v := field.Addr().Interface().(type) {
		case *json.RawMessage:
			if len(*v) > 0 {
				*v = tokens.HideJSON(*v)
			}
		case *[]string:
			if len(*v) > 0 {
				*v = tokens.HideAll(*v)
			}
		case *string:
			*v = tokens.Hide(*v)
		}
	}
	return e
}
