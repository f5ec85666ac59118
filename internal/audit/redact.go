package audit

import (
	"reflect"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
	"github.com/packs-mcp/packs-mcp/internal/tokens"
)

// withoutTokens returns e with anything that looks like an access token or a
// private key removed from every string. It walks all members, so members added
// later are covered.
func withoutTokens(e Entry) Entry {
	fields := reflect.ValueOf(&e).Elem()
	for i := range fields.NumField() { // not Fields, which also describes each
		switch v := fields.Field(i).Addr().Interface().(type) {
		case *strictjson.Compact:
			*v = tokens.HideJSON(*v)
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
