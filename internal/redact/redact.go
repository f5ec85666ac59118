// Package redact removes secrets from what is shown and recorded.
//
// [Secrets] removes known values, in each spelling that programs commonly use. [Text],
// [Args] and [Value] remove what looks like a secret, judging by its name. [Environ] and
// [SensitiveName] say which values are secrets.
//
// It does not decide what is shown to whom, and cannot stop a program that leaks a secret
// on purpose, since other spellings get through. Package tokens handles tokens of known
// services.
package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// minSecret is the length in bytes of the shortest value that is removed from output:
// shorter ones occur everywhere.
const minSecret = 4

// Mark replaces a secret.
const Mark = "[redacted]"

// Secrets are values that must not be shown. Make them with [New]; they are immutable.
type Secrets struct {
	values   []string
	escaped  []string        // the values that JSON spells in another way, as it does, without quotes
	variants []string        // longest first
	finder   *finder         // of variants
	short    map[string]bool // values below minSecret
}

// New returns secrets with these values.
func New(values ...string) *Secrets {
	s := &Secrets{values: slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" }), variants: variants(values), short: make(map[string]bool)}
	s.finder = newFinder(s.variants)
	for _, v := range s.values {
		if spelled := unquoted(strictjson.Canonical(v)); spelled != v {
			s.escaped = append(s.escaped, spelled)
		}
	}
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" && len(v) < minSecret {
			s.short[v] = true
		}
	}
	return s
}

// With returns s with more values.
func (s *Secrets) With(values ...string) *Secrets {
	if len(values) == 0 {
		return s
	}
	return New(slices.Concat(values, s.values)...)
}

// IsEmpty reports whether there are no secrets.
func (s *Secrets) IsEmpty() bool { return len(s.values) == 0 }

// Equal reports whether s and other remove the same values.
func (s *Secrets) Equal(other *Secrets) bool { return slices.Equal(s.values, other.values) }

// Hide returns text with [Mark] in place of each secret. Use it for results; it leaves
// values shorter than 4 bytes.
func (s *Secrets) Hide(text string) string { return cutSpans(text, s.finder.find(text)) }

// HideCut returns the two ends of a text whose middle was removed, without the fragments
// of secrets at the cut. It keeps whole secrets; see [Secrets.Hide].
func (s *Secrets) HideCut(head, tail []byte) (h, t []byte) {
	for _, v := range s.variants {
		for n := min(len(v)-1, len(head)); n >= minSecret; n-- {
			if before, cut := bytes.CutSuffix(head, []byte(v[:n])); cut {
				head = slices.Concat(before, []byte(Mark))
			}
		}
		for n := min(len(v)-1, len(tail)); n >= minSecret; n-- {
			if after, cut := bytes.CutPrefix(tail, []byte(v[len(v)-n:])); cut {
				tail = slices.Concat([]byte(Mark), after)
			}
		}
	}
	return head, tail
}

// In reports whether v, decoded by [json.Unmarshal] into an any, contains one of the
// secrets: in a string (even escaped, in JSON inside it), in a key or in a number.
func (s *Secrets) In(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if s.in(key) || s.In(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, s.In)
	case string:
		return s.in(v)
	case json.Number:
		return s.in(v.String())
	case float64:
		return s.in(strconv.FormatFloat(v, 'f', -1, 64))
	}
	return false
}

func (s *Secrets) in(text string) bool {
	inText := func(v string) bool { return strings.Contains(text, v) }
	return slices.ContainsFunc(s.values, inText) || slices.ContainsFunc(s.escaped, inText)
}
