package frontmatter

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// JSON returns the whole block as one JSON object, with keys in the order of the file.
// Values follow the core schema of YAML 1.2, as in most other readers of the format:
// "yes", a date and 1_000 are strings, and 010 is ten. A number that JSON cannot express,
// such as .inf, is a string too.
func (d *Document) JSON() json.RawMessage {
	var w strictjson.Writer
	writeJSON(&w, d.Node())
	return w.Bytes()
}

func writeJSON(w *strictjson.Writer, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		w.Open('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.Key(n.Content[i].Value)
			writeJSON(w, n.Content[i+1])
		}
		w.Close('}')
		return
	case yaml.SequenceNode:
		w.Open('[')
		for _, item := range n.Content {
			w.Item()
			writeJSON(w, item)
		}
		w.Close(']')
		return
	}
	value := []byte(plainValue(n))
	if len(value) == 0 {
		value = strictjson.Canonical(n.Value)
	}
	w.Value(value)
}

// Patterns for numbers of the core schema; its words are matched one by one. The
// patterns are compiled on first use: most documents need none, and every start of the
// program would wait for them.
var (
	coreInt   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-+]?[0-9]+$`) })
	coreOctal = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^0o[0-7]+$`) })
	coreHex   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^0x[0-9a-fA-F]+$`) })
	coreFloat = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	})
)

// plainValue returns the JSON of a scalar that is not a text, or "" for a text.
func plainValue(n *yaml.Node) string {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	// Recovered values have this tag too.
	if n.Style&quoted != 0 || n.Tag == "!!str" {
		return ""
	}
	base := 10
	switch v := n.Value; {
	case v == "" || v == "~" || v == "null" || v == "Null" || v == "NULL":
		return "null"
	case v == "true" || v == "True" || v == "TRUE":
		return "true"
	case v == "false" || v == "False" || v == "FALSE":
		return "false"
	case coreOctal().MatchString(v):
		base = 8
	case coreHex().MatchString(v):
		base = 16
	case coreInt().MatchString(v):
	case coreFloat().MatchString(v):
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return "" // larger than any number
		}
		number, err := json.Marshal(f)
		if err != nil {
			return ""
		}
		return string(number)
	default:
		return ""
	}
	digits := n.Value
	if base != 10 {
		digits = digits[2:]
	}
	i, ok := new(big.Int).SetString(strings.TrimPrefix(digits, "+"), base)
	if !ok {
		return ""
	}
	return i.String()
}
