package tools

import (
	"encoding/json"
	"slices"
	"strings"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// Secrets returns the names of the parameters whose values must not be shown
// or logged, sorted: those whose schema says "writeOnly": true or "format":
// "password", at any depth, and those with a name like password or api_key.
func (t *Tool) Secrets() []string { return slices.Clone(t.schema().secrets) }

// Redact returns args with the values of secrets replaced by "[redacted]",
// with sorted keys. It takes arguments that were not checked; what is not JSON
// becomes the string "[unreadable]".
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

func redact(v any, secrets []string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value != nil && isSecret(secrets, name) {
				v[name] = redacted
			} else {
				v[name] = redact(value, secrets)
			}
		}
	case []any:
		for i := range v {
			v[i] = redact(v[i], secrets)
		}
	}
	return v
}

// isSecret reports whether the value called name is one of the secrets, which
// are sorted, or one going by its name.
func isSecret(secrets []string, name string) bool {
	_, found := slices.BinarySearch(secrets, name)
	return found || sensitiveName(name)
}

// SecretValues returns the texts that the secrets among v become in arguments,
// URLs and JSON, for whoever shows or records an [Invocation] and has to leave
// them out.
// Longest first; the empty text is not among them.
func (t *Tool) SecretValues(v Values) []string {
	secrets := t.schema().secrets
	var out []string
	var gather func(v any, hidden bool)
	gather = func(v any, hidden bool) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				gather(value, hidden || isSecret(secrets, name))
			}
		case []any:
			for _, e := range v {
				gather(e, hidden)
			}
		}
		if s := render(v); hidden && s != "" && v != nil {
			inJSON := string(canonical(s))
			out = append(out, s, percentEncode(s), inJSON[1:len(inJSON)-1])
		}
	}
	for name, value := range v.fields {
		gather(value, isSecret(secrets, name))
	}
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(out)
}

// sensitiveName reports whether a parameter is a secret going by its name.
func sensitiveName(name string) bool {
	name = strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(name))
	switch name {
	case "pwd", "auth", "bearer", "otp", "pin":
		return true
	}
	for _, word := range []string{"password", "passwd", "passphrase", "secret", "apikey", "accesskey", "privatekey", "credential", "authorization"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return strings.HasSuffix(name, "token")
}
