package program

import (
	"errors"
	"strings"
)

// A tomlEntry is one key of a TOML document with its value, as far as that is
// simple: a string, or a list of strings, without escapes. What else there may
// be is recognized, so that it is not taken for something simple, and not read.
type tomlEntry struct {
	key    []string // with the names of its tables before it
	table  bool     // the head of a table, which has no value
	values []string
	simple bool
}

// parseTOML returns the entries of a document in their order.
func parseTOML(text string) ([]tomlEntry, error) {
	statements, err := tomlStatements(text)
	if err != nil {
		return nil, err
	}
	var entries []tomlEntry
	var table []string
	for _, st := range statements {
		if name, ok := strings.CutPrefix(st, "["); ok {
			name, ok = strings.CutSuffix(name, "]")
			if list, isList := strings.CutPrefix(name, "["); isList {
				name, ok = strings.CutSuffix(list, "]")
			}
			key, rest, err := tomlKey(name)
			if err != nil || !ok || rest != "" {
				return nil, errors.New("it has a table whose name cannot be read")
			}
			table = key
			entries = append(entries, tomlEntry{key: table, table: true})
			continue
		}
		key, rest, err := tomlKey(st)
		value, ok := strings.CutPrefix(rest, "=")
		if err != nil || !ok {
			return nil, errors.New("it has a line that cannot be read")
		}
		e := tomlEntry{key: append(append([]string{}, table...), key...)}
		e.values, e.simple = tomlStrings(strings.TrimSpace(value))
		entries = append(entries, e)
	}
	return entries, nil
}

// tomlStatements returns the lines of a document without comments, each of them
// whole: a list or a string may be longer than a line.
func tomlStatements(text string) ([]string, error) {
	var statements []string
	var st strings.Builder
	depth := 0
	for len(text) > 0 {
		n := 1
		switch c := text[0]; {
		case c == '#':
			text = text[indexOrEnd(text, "\n"):]
			continue
		case c == '"' || c == '\'':
			var err error
			if n, err = tomlStringEnd(text); err != nil {
				return nil, err
			}
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == '\n' && depth == 0:
			statements = append(statements, st.String())
			st.Reset()
		}
		if depth < 0 {
			return nil, errors.New("its brackets do not match")
		}
		st.WriteString(text[:n])
		text = text[n:]
	}
	if depth != 0 {
		return nil, errors.New("its brackets do not match")
	}
	var kept []string
	for _, s := range append(statements, st.String()) {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	return kept, nil
}

// tomlStringEnd returns the length of the string that text begins with.
func tomlStringEnd(text string) (int, error) {
	quote := text[:1]
	escapes := quote == `"`
	multi := strings.HasPrefix(text, strings.Repeat(quote, 3))
	if multi {
		quote = text[:3]
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case escapes && text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], quote):
			i += len(quote)
			// Up to two more quotes belong to the string's own text.
			for more := 0; multi && more < 2 && i < len(text) && text[i] == quote[0]; more++ {
				i++
			}
			return i, nil
		case text[i] == '\n' && !multi:
			return 0, errors.New("a string does not end on its line")
		}
	}
	return 0, errors.New("a string does not end")
}

// tomlKey parses the key, perhaps a dotted one, that s begins with.
func tomlKey(s string) (key []string, rest string, err error) {
	for {
		s = strings.TrimLeft(s, " \t")
		n := 0
		if s != "" && (s[0] == '"' || s[0] == '\'') {
			if n, err = tomlStringEnd(s); err != nil {
				return nil, "", err
			}
			values, ok := tomlStrings(s[:n])
			if !ok {
				return nil, "", errors.New("a key cannot be read")
			}
			key = append(key, values[0])
		} else {
			for n < len(s) && (s[n] == '_' || s[n] == '-' || '0' <= s[n] && s[n] <= '9' || 'A' <= s[n]&^0x20 && s[n]&^0x20 <= 'Z') {
				n++
			}
			if n == 0 {
				return nil, "", errors.New("a key cannot be read")
			}
			key = append(key, s[:n])
		}
		s = strings.TrimLeft(s[n:], " \t")
		var more bool
		if s, more = strings.CutPrefix(s, "."); !more {
			return key, s, nil
		}
	}
}

// tomlStrings returns the strings of a value that is one or a list of them.
func tomlStrings(value string) ([]string, bool) {
	if value == "" {
		return nil, false
	}
	if list, ok := strings.CutPrefix(value, "["); ok {
		var values []string
		for list = strings.TrimSpace(list); list != "]"; {
			n := 0
			if list != "" && (list[0] == '"' || list[0] == '\'') {
				n, _ = tomlStringEnd(list)
			}
			one, ok := tomlStrings(list[:n])
			if !ok {
				return nil, false
			}
			values = append(values, one...)
			list = strings.TrimSpace(list[n:])
			if rest, ok := strings.CutPrefix(list, ","); ok {
				list = strings.TrimSpace(rest)
			} else if list != "]" {
				return nil, false
			}
		}
		return values, true
	}
	quote := value[0]
	if quote != '"' && quote != '\'' || len(value) < 2 || value[len(value)-1] != quote {
		return nil, false
	}
	inner := value[1 : len(value)-1]
	if strings.ContainsAny(inner, string(quote)+"\n") || quote == '"' && strings.Contains(inner, `\`) {
		return nil, false
	}
	return []string{inner}, true
}

func indexOrEnd(s, sub string) int {
	if i := strings.Index(s, sub); i >= 0 {
		return i
	}
	return len(s)
}
