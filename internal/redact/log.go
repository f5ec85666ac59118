package redact

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Logged is [Secrets.Hide] for records. People read these and no program depends on
// them, so it also removes short values where they are separate words.
func (s *Secrets) Logged(text string) string {
	text = s.Hide(text)
	if len(s.short) == 0 {
		return text
	}
	var spans []span
	for from := 0; from < len(text); from++ {
		if before, _ := utf8.DecodeLastRuneInString(text[:from]); isWord(before) {
			continue
		}
		for to := min(from+minSecret-1, len(text)); to > from; to-- {
			if after, _ := utf8.DecodeRuneInString(text[to:]); s.short[text[from:to]] && !isWord(after) {
				spans = append(spans, span{from, to})
				break
			}
		}
	}
	return cutSpans(text, spans)
}

func isWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// value returns v, as made by [json.Unmarshal], without secrets. It changes v.
func (s *Secrets) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			value := s.value(v[key])
			if hidden := s.Logged(key); hidden != key {
				delete(v, key)
				key = hidden
			}
			v[key] = value
		}
	case []any:
		for i := range v {
			v[i] = s.value(v[i])
		}
	case string:
		return s.Logged(v)
	case json.Number:
		if text := s.Logged(v.String()); text != v.String() {
			return text
		}
	}
	return v
}

// LoggedArgs returns a program's arguments for the audit log: without the secrets and
// what [Args] finds.
func (s *Secrets) LoggedArgs(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = s.Logged(a)
	}
	return Args(out)
}

// LoggedValue returns a call's arguments for the audit log if no schema describes
// them or a tool has already redacted them. Numbers must be decoded as [json.Number].
// It removes the secrets from values and keys, and texts that look like secrets, as
// in a program's arguments ["--token", "X"]. Keys are sorted. It changes v.
func (s *Secrets) LoggedValue(v any) strictjson.Compact {
	return strictjson.Write(Value(s.value(v), SensitiveName))
}
