package server

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// The bounds of a value of the environment, in bytes, that is taken for a
// secret: shorter ones are words, and longer ones files.
const (
	minEnvironSecret = 8
	maxEnvironSecret = 32 << 10
)

// environSecrets returns the values of environ that are secrets, going by their
// names, and the passwords of its URLs: clients give their servers the keys
// that they use themselves. The names of files that exist are none.
func environSecrets(environ []string) []string {
	var out []string
	add := func(value string) {
		if len(value) >= minEnvironSecret && len(value) <= maxEnvironSecret && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if u, err := url.Parse(value); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok && password != u.User.Username() {
				add(password)
			}
		}
		if !isEnvironSecret(name) || isFile(value) {
			continue
		}
		add(value)
	}
	return out
}

// isEnvironSecret reports whether the variable called name is a secret. A key
// is one here, other than among the parameters of a tool.
func isEnvironSecret(name string) bool {
	upper := strings.ToUpper(name)
	return tools.SensitiveName(name) || upper == "KEY" || strings.HasSuffix(upper, "_KEY") || strings.HasSuffix(upper, "_KEYS") ||
		strings.HasSuffix(upper, "_PASS") || strings.HasSuffix(upper, "_PAT")
}

func isFile(value string) bool {
	if !filepath.IsAbs(value) {
		return false
	}
	_, err := os.Lstat(value)
	return err == nil
}

// A logRedactor takes secrets out of what is recorded. Texts of the log are
// read by people and other programs, and none of them has to work, so it
// takes out more than what is taken out of results.
type logRedactor struct {
	variants []string
	short    map[string]bool // secrets below minSecret
}

func newLogRedactor(secrets []string) *logRedactor {
	l := &logRedactor{variants: variants(secrets), short: make(map[string]bool)}
	for _, s := range secrets {
		if s = strings.TrimSpace(s); s != "" && len(s) < minSecret {
			l.short[s] = true
		}
	}
	return l
}

// text is text without secrets. A short one is taken out where it stands by
// itself.
func (l *logRedactor) text(text string) string {
	text = hide(text, l.variants)
	if len(l.short) == 0 {
		return text
	}
	var spans []span
	for from := 0; from < len(text); from++ {
		if before, _ := utf8.DecodeLastRuneInString(text[:from]); isWord(before) {
			continue
		}
		for to := min(from+minSecret-1, len(text)); to > from; to-- {
			if after, _ := utf8.DecodeRuneInString(text[to:]); l.short[text[from:to]] && !isWord(after) {
				spans = append(spans, span{from, to})
				break
			}
		}
	}
	return cutSpans(text, spans)
}

func isWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// value is v, as [json.Unmarshal] makes it, without secrets. It changes v.
func (l *logRedactor) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			value := l.value(v[key])
			if hidden := l.text(key); hidden != key {
				delete(v, key)
				key = hidden
			}
			v[key] = value
		}
	case []any:
		for i := range v {
			v[i] = l.value(v[i])
		}
	case string:
		return l.text(v)
	case json.Number:
		if text := l.text(v.String()); text != v.String() {
			return text
		}
	}
	return v
}

// loggedArgs is what the audit log keeps of a program's arguments.
func loggedArgs(args, secrets []string) []string {
	l := newLogRedactor(secrets)
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = l.text(a)
	}
	return tools.RedactArgv(out)
}

// redactExec is what the audit log keeps of a call's arguments that no schema
// describes, or of arguments that a tool has redacted already: without the
// secrets, in any spelling of JSON, in values and in keys, and without what is
// written as one, as in a program's arguments ["--token", "X"]. Keys are
// sorted. What is not JSON becomes the string "[unreadable]".
func redactExec(args json.RawMessage, secrets []string) json.RawMessage {
	const unreadable = `"[unreadable]"`
	if len(bytes.TrimSpace(args)) == 0 {
		return args
	}
	if !json.Valid(args) { // a Decoder leaves what follows the value
		return json.RawMessage(unreadable)
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return json.RawMessage(unreadable)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tools.RedactValue(newLogRedactor(secrets).value(v))); err != nil {
		return json.RawMessage(unreadable)
	}
	return json.RawMessage(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}
