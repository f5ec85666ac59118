package tools

import "github.com/packs-mcp/packs-mcp/internal/strictjson"

// What the tests of this package look at, which are outside of it because they parse.
const (
	MaxArguments = maxArguments
	MaxParsed    = maxParsed
)

// OutputError is what Apply returns.
type OutputError = outputError

// JSON returns the values.
func (v Values) JSON() string { return string(v.json()) }

// Secrets returns the names of the parameters that are secret.
func (t *Tool) Secrets() []string { return t.schema().Secrets }

// Given returns the values of arguments that no schema was asked about.
func Given(root *strictjson.Node) Values { return Values{given: root} }
