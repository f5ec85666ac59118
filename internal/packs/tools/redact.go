package tools

import (
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Redact returns the original arguments of v, with the values of secrets replaced by
// "[redacted]". The caller may change what it returns, which is as [json.Unmarshal]
// makes it of anything. Secret are the parameters that are declared so, by
// "writeOnly": true, "format": "password" or "secret": true at any depth, and those
// with a name like password or api_key. In all other texts, what [redact.Text] and
// [redact.Args] find is replaced as well.
func (t *Tool) Redact(v Values) any {
	if v.given == nil {
		return map[string]any{}
	}
	secrets := t.schema().Secrets
	return redact.Value(v.given.Value(), func(name string) bool { return schema.IsSecret(secrets, name) })
}

// SecretValues returns, for the log, the texts that the secrets in v become in
// arguments, URLs and JSON, going by declarations and names. They are sorted, longest
// first, without the empty text.
func (t *Tool) SecretValues(v Values) []string {
	secrets := t.schema().Secrets
	return valuesOf(v, func(name string) bool { return schema.IsSecret(secrets, name) })
}

// DeclaredSecrets returns the same for declared secrets only, for results: a caller
// knows what it passed, and a name proves nothing.
func (t *Tool) DeclaredSecrets(v Values) []string {
	declared := t.schema().Declared
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
		if s := template.Render(v); hidden && s != "" && redact.MayBeSecret(v) {
			inJSON := string(strictjson.Canonical(s))
			out = append(out, s, template.PercentEncode(s), inJSON[1:len(inJSON)-1])
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
