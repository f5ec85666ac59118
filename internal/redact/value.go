package redact

import "strings"

// Value returns v, which is a result of [json.Unmarshal], with [Mark] in place of
// values with a secret's name, and of what [Text] and [Args] find in other texts.
// isSecret reports whether a name is a secret's, like [SensitiveName]. It changes v.
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

// texts returns list as strings if it contains nothing else.
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

// isPair reports whether an object is an entry in a list of headers or variables,
// such as {"name": "Authorization", "value": …}, with a secret's name.
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

// MayBeSecret reports whether a value can be a secret at all: use_auth, for example,
// may be true or false.
func MayBeSecret(v any) bool {
	_, truth := v.(bool)
	return v != nil && !truth
}
