package redact

import "strings"

// Value returns v, which is JSON as [json.Unmarshal] makes it of anything, with
// [Mark] in the place of what is called by a secret's name, and of what [Text] and
// [Args] find in the other texts. isSecret reports whether a name is a secret's, as
// [SensitiveName] does. It changes v.
func Value(v any, isSecret func(name string) bool) any {
	switch v := v.(type) {
	case map[string]any:
		pair := isPair(v, isSecret)
		for name, inner := range v {
			if MayBeSecret(inner) && (isSecret(name) || pair && isValueKey(name)) {
				v[name] = Mark
			} else {
				v[name] = Value(inner, isSecret)
			}
		}
	case []any:
		if argv, ok := texts(v); ok {
			for i, arg := range Args(argv) {
				v[i] = arg
			}
			return v
		}
		for i := range v {
			v[i] = Value(v[i], isSecret)
		}
	case string:
		return Text(v)
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
func isPair(object map[string]any, isSecret func(name string) bool) bool {
	for key, value := range object {
		switch strings.ToLower(key) {
		case "name", "key", "header", "field", "variable", "id":
			if name, ok := value.(string); ok && isSecret(name) {
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

// MayBeSecret reports whether a value can be a secret at all: what is called
// use_auth may be true or false.
func MayBeSecret(v any) bool {
	_, truth := v.(bool)
	return v != nil && !truth
}
