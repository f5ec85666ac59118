package tools

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// schemaURL is where a schema is while it is compiled: nowhere that could be
// fetched. It is hierarchical, so that a relative reference leads elsewhere.
const (
	schemaBase = "pack://schema/"
	schemaURL  = schemaBase + "root"
)

// noLoader refuses to fetch anything: a pack does not make this process read
// files or open connections.
type noLoader struct{}

func (noLoader) Load(u string) (any, error) {
	return nil, errors.New("schemas outside the file are not read")
}

// compileSchema compiles root as JSON Schema 2020-12, unless it names another
// dialect that is known.
func compileSchema(root *node) (*jsonschema.Schema, error) {
	parts := 0
	if err := countable(root, &parts); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patterns())
	if err := c.AddResource(schemaURL, root.value()); err != nil {
		return nil, &schemaError{problem: err.Error()}
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, explainSchema(err)
	}
	if err := weighSchema(compiled); err != nil {
		return nil, err
	}
	return compiled, nil
}

// A schemaError says where and why a schema does not compile.
type schemaError struct {
	path    []string // in the schema
	problem string
	hint    string
}

func (e *schemaError) Error() string { return e.problem }

func explainSchema(err error) *schemaError {
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			if leaves := leavesOf(v, nil); len(leaves) > 0 {
				l := leaves[0]
				return &schemaError{path: l.path, problem: l.text, hint: "see the JSON Schema 2020-12 specification for what this keyword takes"}
			}
		}
	}
	if e, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		out := &schemaError{problem: fmt.Sprintf("pattern %q cannot be checked here: %v", clip(e.Regex), e.Err), hint: "use a pattern without look-around and back references"}
		if _, fragment, ok := strings.Cut(e.URL, "#"); ok {
			if fragment, err := url.PathUnescape(fragment); err == nil {
				out.path = splitPointer(fragment)
			}
		}
		return out
	}
	if e, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return &schemaError{problem: fmt.Sprintf("refers to %q, which is outside the file", strings.TrimPrefix(e.URL, schemaBase)), hint: "copy what it refers to into $defs"}
	}
	return &schemaError{problem: strings.ReplaceAll(err.Error(), schemaURL, ""), hint: "see the JSON Schema 2020-12 specification"}
}

// A leaf is one thing that a validator found.
type leaf struct {
	path []string // in the instance
	kind jsonschema.ErrorKind
	text string
	at   string // pointer of path
}

// leavesOf returns what is wrong in the end, without the combinators on the
// way, in a stable order. secrets, sorted, names values that must not be shown.
func leavesOf(v *jsonschema.ValidationError, secrets []string) []leaf {
	const maxText = 300 // bytes
	printer := message.NewPrinter(language.English)
	var out []leaf
	var walk func(*jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		if len(v.Causes) > 0 {
			for _, c := range v.Causes {
				walk(c)
			}
			return
		}
		l := leaf{path: v.InstanceLocation, kind: v.ErrorKind, text: v.ErrorKind.LocalizedString(printer), at: pointer(v.InstanceLocation)}
		if slices.ContainsFunc(l.path, func(tok string) bool { return isSecret(secrets, tok) }) {
			l.text = "not valid (the value is secret and not shown)"
		}
		switch k := v.ErrorKind.(type) {
		case *kind.Required:
			slices.Sort(k.Missing)
			l.text = "missing " + quoted(k.Missing)
		case *kind.AdditionalProperties:
			slices.Sort(k.Properties)
			l.text = "unknown " + quoted(k.Properties)
		case *kind.FalseSchema:
			l.text = "not allowed here"
		}
		l.text = cut(l.text, maxText)
		l.text = cut(printable(l.text), maxText)
		out = append(out, l)
	}
	walk(v)
	slices.SortFunc(out, func(a, b leaf) int {
		if c := strings.Compare(a.at, b.at); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	return slices.CompactFunc(out, func(a, b leaf) bool {
		return a.text == b.text && slices.Equal(a.path, b.path)
	})
}

// printable escapes what a person would not see, or not where it is.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}
