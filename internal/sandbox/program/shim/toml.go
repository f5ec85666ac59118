package shim

import (
	"errors"
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A tomlEntry is one key of a TOML document. It has the value if that is simple: a string
// without escapes, or a list of such strings.
type tomlEntry struct {
	key    []string // with the names of its tables before it
	table  bool     // the head of a table, which has no value
	values []string
	simple bool
}

// parseTOML returns the entries of a document in order. Its errors do not quote the
// document.
//
// It uses the library's parser of expressions, and not its decoder, which loses the order
// and takes seconds for a small hostile document.
func parseTOML(text string) ([]tomlEntry, error) {
	var p unstable.Parser
	p.Reset([]byte(text))
	var entries []tomlEntry
	var table []string
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = tomlKey(e)
			entries = append(entries, tomlEntry{key: table, table: true})
		case unstable.KeyValue:
			one := tomlEntry{key: append(append([]string{}, table...), tomlKey(e)...)}
			one.values, one.simple = tomlStrings(e.Value())
			entries = append(entries, one)
		}
	}
	if err := p.Error(); err != nil {
		if e, ok := errors.AsType[*unstable.ParserError](err); ok && len(e.Highlight) > 0 {
			return nil, fmt.Errorf("it is not TOML at line %d", p.Shape(p.Range(e.Highlight)).Start.Line)
		}
		return nil, errors.New("it is not TOML")
	}
	return entries, nil
}

func tomlKey(e *unstable.Node) (key []string) {
	for it := e.Key(); it.Next(); {
		key = append(key, string(it.Node().Data))
	}
	return key
}

// tomlStrings returns the strings of a value that is one or a list of them.
func tomlStrings(value *unstable.Node) (values []string, ok bool) {
	switch value.Kind {
	case unstable.String:
		// A string on one line without escapes is as long as its value and two quotes.
		if int(value.Raw.Length) != len(value.Data)+len(`""`) {
			return nil, false
		}
		return []string{string(value.Data)}, true
	case unstable.Array:
		for it := value.Children(); it.Next(); {
			one, ok := tomlStrings(it.Node())
			if !ok || it.Node().Kind != unstable.String {
				return nil, false
			}
			values = append(values, one...)
		}
		return values, true
	}
	return nil, false
}
