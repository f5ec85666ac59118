// Package redact takes secrets out of what is shown and recorded.
//
// [Secrets] takes out known values, in each spelling that programs commonly use.
// [Text], [Args] and [Value] take out what is written as a secret, going by its
// name. [Environ] and [SensitiveName] say which values are secrets.
//
// It does not decide what is shown to whom, and it stops no program that means to
// give a secret away: any other spelling gets through. Tokens of known services,
// wherever they come from, are the subject of package tokens.
package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// minSecret is the shortest value, in bytes, that is taken out of output:
// shorter ones occur in everything.
const minSecret = 4

// Mark stands where a secret was.
const Mark = "[redacted]"

// Secrets are values that must not be seen. Make them with [New]; they never
// change.
type Secrets struct {
	values   []string
	variants []string        // the longest first
	finder   *finder         // of variants
	short    map[string]bool // values below minSecret
}

// New returns secrets with these values.
func New(values ...string) *Secrets {
	s := &Secrets{values: slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" }), variants: variants(values), short: make(map[string]bool)}
	s.finder = newFinder(s.variants)
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" && len(v) < minSecret {
			s.short[v] = true
		}
	}
	return s
}

// With returns s and more values.
func (s *Secrets) With(values ...string) *Secrets {
	if len(values) == 0 {
		return s
	}
	return New(slices.Concat(values, s.values)...)
}

// IsEmpty reports whether there are no secrets.
func (s *Secrets) IsEmpty() bool { return len(s.values) == 0 }

// Equal reports whether s and other take out the same values.
func (s *Secrets) Equal(other *Secrets) bool { return slices.Equal(s.values, other.values) }

// Hide returns text with [Mark] in the place of each secret. It is for results,
// and leaves values of less than 4 bytes in.
func (s *Secrets) Hide(text string) string { return cutSpans(text, s.finder.find(text)) }

// HideCut returns the two ends of a text, whose middle was left out, without the
// parts of secrets that the cut goes through. Secrets that are whole stay; see
// [Secrets.Hide].
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

// In reports whether one of the secrets is in v, which is JSON as [json.Unmarshal]
// makes it of anything: in a string, also as the JSON in it spells the secret, in a key
// or in a number.
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
	return slices.ContainsFunc(s.values, func(v string) bool {
		return strings.Contains(text, v) || strings.Contains(text, inJSON(v)[0])
	})
}
