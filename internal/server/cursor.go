package server

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// pageSize is how many entries a page of a list has: small enough for a message
// that every client takes, and few enough pages for ten thousand packs.
const pageSize = 100

// A list that is given by pages has a cursor that names it and the last key
// that was given, so that it stays right when entries come and go, and is not
// taken for one of another list.
func cursorAfter(list, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + "\x00" + last))
}

// afterCursor returns the key after which a page begins; empty is the first.
func afterCursor(list, cursor string) (last string, err error) {
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

// pageOf returns the entries of a page, and the cursor of the next one; empty
// when there is none. The entries must be sorted by their keys, which are never
// empty, and each key is there once.
func pageOf[T any](list, cursor string, all []T, key func(T) string) (page []T, next string, err error) {
	after, err := afterCursor(list, cursor)
	if err != nil {
		return nil, "", err
	}
	from, found := slices.BinarySearchFunc(all, after, func(e T, after string) int { return strings.Compare(key(e), after) })
	if found {
		from++
	}
	to := min(from+pageSize, len(all))
	if to < len(all) {
		next = cursorAfter(list, key(all[to-1]))
	}
	return append([]T{}, all[from:to]...), next, nil
}
