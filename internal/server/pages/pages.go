// Package pages splits sorted lists into pages, each with a cursor for the next one.
//
// A cursor names its list and the last key on the page, so that it stays right when
// entries come and go, and cannot be used for another list. The server keeps no state
// for it. It is not secret: with a cursor, a client learns nothing that it could not
// ask for.
package pages

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// Size is how many entries a page has: small enough for a message that every client
// accepts, and large enough to list ten thousand packs in few pages.
const Size = 100

// Cursor returns the cursor of the page after the key last.
func Cursor(list, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + "\x00" + last))
}

// After returns the key after which a page begins; empty for the first page.
func After(list, cursor string) (last string, err error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	of, last, ok := strings.Cut(string(raw), "\x00")
	if err != nil || !ok || of != list || last == "" {
		return "", &toolerr.RPCError{Code: wire.CodeInvalidParams, Message: "the cursor is not one of this list; leave it out to begin again"}
	}
	return last, nil
}

// Of returns the entries of a page, and the cursor of the next page; empty if there
// is none. The entries must be sorted by their keys, which are unique and never
// empty.
func Of[T any](list, cursor string, all []T, key func(T) string) (page []T, next string, err error) {
	after, err := After(list, cursor)
	if err != nil {
		return nil, "", err
	}
	from, found := slices.BinarySearchFunc(all, after, func(e T, after string) int { return strings.Compare(key(e), after) })
	if found {
		from++
	}
	to := min(from+Size, len(all))
	if to < len(all) {
		next = Cursor(list, key(all[to-1]))
	}
	return append([]T{}, all[from:to]...), next, nil
}
