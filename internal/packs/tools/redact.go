package tools

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// Redact returns args with the values of secrets replaced by "[redacted]",
// with sorted keys. Secret are the parameters that are declared so, by "writeOnly":
// true, "format": "password" or "secret": true at any depth, and those with a name
// like password or api_key. It takes arguments that were not checked; what is not JSON
// becomes the string "[unreadable]". In all other texts, what [redactText] and
// [RedactArgv] find is replaced as well.
func (t *Tool) Redact(args json.RawMessage) json.RawMessage {
	if strings.TrimSpace(string(args)) == "" {
		return json.RawMessage("{}")
	}
	root, e := parseJSON(args)
	if e != nil {
		return json.RawMessage(`"[unreadable]"`)
	}
	return canonical(redact(root.value(), t.schema().secrets))
}

// RedactValue returns v, which is JSON as [json.Unmarshal] makes it of
// anything, as [Tool.Redact] does for a tool whose schema names no secrets. It
// changes v.
func RedactValue(v any) any { return redact(v, nil) }

func redact(v any, secrets []string) any {
	switch v := v.(type) {
	case map[string]any:
		pair := isPair(v, secrets)
		for name, value := range v {
			if mayBeSecret(value) && (isSecret(secrets, name) || pair && isValueKey(name)) {
				v[name] = redacted
			} else {
				v[name] = redact(value, secrets)
			}
		}
	case []any:
		if argv, ok := texts(v); ok {
			for i, arg := range RedactArgv(argv) {
				v[i] = arg
			}
			return v
		}
		for i := range v {
			v[i] = redact(v[i], secrets)
		}
	case string:
		return redactText(v)
	}
	return v
}

// texts returns list as texts, if it has nothing else.
func texts(list []any) ([]string, bool) {
	out := make([]string, len(list))
	for i, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, false
		}
		out[i] = s
	}
	return out, true
}

// isPair reports whether an object is an entry of a list of headers or
// variables, as in {"name": "Authorization", "value": …}, and the name is that
// of a secret.
func isPair(object map[string]any, secrets []string) bool {
	for key, value := range object {
		switch strings.ToLower(key) {
		case "name", "key", "header", "field", "variable", "id":
			if name, ok := value.(string); ok && isSecret(secrets, name) {
				return true
			}
		}
	}
	return false
}

func isValueKey(key string) bool {
	switch strings.ToLower(key) {
	case "value", "values", "val", "default", "content", "data":
		return true
	}
	return false
}

// mayBeSecret reports whether a value can be a secret at all: what is called
// use_auth may be true or false.
func mayBeSecret(v any) bool {
	_, truth := v.(bool)
	return v != nil && !truth
}

// isSecret reports whether the value called name is one of the secrets, which
// are sorted, or one going by its name.
func isSecret(secrets []string, name string) bool {
	_, found := slices.BinarySearch(secrets, name)
	return found || sensitiveName(name)
}

// SecretValues returns the texts that the secrets among v become in arguments,
// URLs and JSON, going by declarations and by names, for the log. Longest first;
// the empty text is not among them.
func (t *Tool) SecretValues(v Values) []string {
	secrets := t.schema().secrets
	return valuesOf(v, func(name string) bool { return isSecret(secrets, name) })
}

// DeclaredSecrets is SecretValues of what is declared secret alone, for results: a
// caller knows what it passed, and a name proves nothing.
func (t *Tool) DeclaredSecrets(v Values) []string {
	declared := t.schema().declared
	return valuesOf(v, func(name string) bool {
		_, found := slices.BinarySearch(declared, name)
		return found
	})
}

func valuesOf(v Values, isSecret func(name string) bool) []string {
	var out []string
	var gather func(v any, hidden bool)
	gather = func(v any, hidden bool) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				gather(value, hidden || isSecret(name))
			}
		case []any:
			for _, e := range v {
				gather(e, hidden)
			}
		}
		if s := render(v); hidden && s != "" && mayBeSecret(v) {
			inJSON := string(canonical(s))
			out = append(out, s, percentEncode(s), inJSON[1:len(inJSON)-1])
		}
	}
	for name, value := range v.fields {
		gather(value, isSecret(name))
	}
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(out)
}

// maxName is the longest name that is looked at; nobody calls a secret longer.
const maxName = 256

// SensitiveName reports whether what is called name is a secret, going by that
// name: a parameter, an option, a header or a variable of the environment, in
// any style: api_key, apiKey, X-API-Key, APIKEYS. It is wrong at times, in both
// directions.
func SensitiveName(name string) bool { return sensitiveName(name) }

// sensitiveName is SensitiveName.
func sensitiveName(name string) bool {
	if len(name) > maxName {
		return false
	}
	words := nameWords(name)
	if len(words) == 0 {
		return false
	}
	before := ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch words[len(words)-1] {
	case "auth", "bearer", "otp", "totp", "passcode", "jwt", "cookie", "cookies":
		return true
	case "pwd":
		return name != "PWD" && name != "OLDPWD" // the working folder
	case "pin":
		return before == "" // else one of a chip
	case "pat", "pass":
		switch before {
		case "", "user", "admin", "root", "login", "db", "database", "mysql", "pg", "postgres", "redis", "smtp", "mail", "ftp", "http", "proxy",
			"github", "gitlab", "gh", "azure", "ado":
			return true
		}
	}
	joined := strings.Join(words, "")
	for _, word := range []string{
		"password", "passwd", "passphrase", "secret", "credential", "authorization", "connectionstring", "apikey",
		"accesskey", "privatekey", "encryptionkey", "signingkey", "sharedkey", "accountkey", "masterkey", "sessionkey",
	} {
		if strings.Contains(joined, word) {
			return true
		}
	}
	return sensitiveToken(words)
}

// sensitiveToken reports whether words speak of a token that lets somebody in,
// and not of how many there are, or of a place in a list.
func sensitiveToken(words []string) bool {
	for i, word := range words {
		stem, one := strings.CutSuffix(strings.TrimSuffix(strings.TrimRight(word, "0123456789"), "s"), "token")
		if !one {
			continue
		}
		before := stem
		if before == "" && i > 0 {
			before = words[i-1]
		}
		switch before {
		case "max", "min", "num", "number", "n", "total", "prompt", "completion", "input", "output", "cached", "reasoning", "thinking",
			"page", "continuation", "stop", "special":
			continue
		}
		if i+1 < len(words) {
			switch words[i+1] {
			case "count", "counts", "limit", "budget", "type", "types", "url", "uri", "endpoint", "ttl", "expiry", "usage", "index", "per":
				continue
			}
		}
		return true
	}
	return false
}

// nameWords splits a name at everything but letters and digits, and where
// camelCase has its humps, into words in lower case.
func nameWords(name string) []string {
	var words []string
	start := -1 // of the word that name[:i] ends with
	var last rune
	end := func(i int) {
		if start >= 0 {
			words = append(words, strings.ToLower(name[start:i]))
		}
	}
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end(i)
			start = -1
		case start < 0:
			start = i
		case unicode.IsUpper(r):
			// APIKeys is API and Keys; APIs is one word.
			next, _ := utf8.DecodeRuneInString(name[i+utf8.RuneLen(r):])
			if !unicode.IsUpper(last) || unicode.IsLower(next) && next != 's' {
				end(i)
				start = i
			}
		}
		last = r
	}
	end(len(name))
	return words
}
