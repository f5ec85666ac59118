// Package strictjson reads JSON in the one way in which nobody can disagree about
// what it says: one value, no key twice, numbers as they were written. It also
// writes what it read in one spelling.
//
// It does not say where in a file a mistake is, does not know any schema, and does
// not read into structs.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Format writes a decoded value as JSON without spaces, with the keys of objects
// sorted: values that are equal have the same text. It keeps "<" and its like, since
// people read it.
func Format(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v)) // unreachable: v came out of Decode
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// A DuplicateError names an object key that is there twice. Readers differ in
// which of the two they take, so nobody could say what was approved.
type DuplicateError struct{ Key string }

func (e *DuplicateError) Error() string { return fmt.Sprintf("%q is there twice", e.Key) }

// ErrNotJSON is the error for bytes that are not exactly one JSON value.
var ErrNotJSON = errors.New("not one JSON value")

// Decode reads exactly one JSON value: nil, a bool, a [json.Number], a string, a
// []any or a map[string]any. Numbers stay as they were written, and an object that
// names a key twice is a [*DuplicateError].
func Decode(raw []byte) (any, error) {
	// Valid also bounds the depth, which the decoder's tokens do not.
	if !json.Valid(raw) {
		return nil, ErrNotJSON
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return decodeValue(d)
}

func decodeValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		object := make(map[string]any)
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			key := k.(string)
			if _, twice := object[key]; twice {
				return nil, &DuplicateError{key}
			}
			if object[key], err = decodeValue(d); err != nil {
				return nil, err
			}
		}
		_, err := d.Token() // the closing brace
		return object, err
	case json.Delim('['):
		array := []any{}
		for d.More() {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			array = append(array, v)
		}
		_, err := d.Token()
		return array, err
	}
	return t, nil
}
