package audit

import (
	"reflect"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
	"github.com/packs-mcp/packs-mcp/internal/tokens"
)

// withoutTokens returns e with anything that looks like an access token or a
// private key removed from every string. It walks all members, so members added
// later are covered if their type is one of those below; a test fails for any other.
func withoutTokens(e Entry) Entry {
	fields := reflect.ValueOf(&e).Elem()
	for i := range fields.NumField() { //nolint:modernize // Fields also describes each, which takes as long again
		switch v := fields.Field(i).Addr().Interface().(type) {
		case *strictjson.Compact:
			*v = tokens.HideJSON(*v)
		case *[]string:
			if len(*v) > 0 {
				*v = tokens.HideAll(*v)
			}
		case *string:
			*v = tokens.Hide(*v)
		case *[]Contact:
			*v = slices.Clone(*v)
			for i := range *v {
				(*v)[i].Host = tokens.Hide((*v)[i].Host) // the program's own words; the rest is ours
			}
		}
	}
	return e
}
