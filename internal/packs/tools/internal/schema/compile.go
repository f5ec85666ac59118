package schema

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// schemaURL is the base URL of a schema while it is compiled. It cannot be fetched. It is
// hierarchical, so that a relative reference resolves to a different URL.
const (
	schemaBase = "pack://schema/"
	schemaURL  = schemaBase + "root"
)

// noLoader refuses to fetch anything, so that a pack cannot make this process read files
// or open connections.
type noLoader struct{}

func (noLoader) Load(u string) (any, error) {
	return nil, errors.New("schemas outside the file are not read")
}

// Compile compiles root as JSON Schema 2020-12, unless it names another known dialect.
func Compile(root *strictjson.Node) (*jsonschema.Schema, error) {
	parts := 0
	if err := countable(root, &parts); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patterns())
	if err := c.AddResource(schemaURL, root.Value()); err != nil {
		return nil, &Error{Problem: err.Error()}
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

// publishedURL is the base URL of a schema of this program while it is compiled. The
// library treats schemas under this address as standard ones and does not validate them
// against the meta-schema, which would double the time; a test does that instead.
const publishedURL = "https://json-schema.org/packs-mcp"

// Published compiles a schema of this program, or the part that a fragment names.
func Published(text, fragment string) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		c := jsonschema.NewCompiler()
		c.UseLoader(noLoader{})
		c.UseRegexpEngine(whenUsed)
		if err = c.AddResource(publishedURL, doc); err == nil {
			var s *jsonschema.Schema
			if s, err = c.Compile(publishedURL + fragment); err == nil {
				return s
			}
		}
	}
	panic(fmt.Sprintf("an embedded schema: %v", err)) // a test compiles it
}

// A lazyPattern is a pattern of this program that is compiled on first use: most files of
// tools need few patterns.
type lazyPattern struct {
	expr    string
	compile func() *regexp.Regexp
}

func whenUsed(expr string) (jsonschema.Regexp, error) {
	return lazyPattern{expr, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}, nil
}

func (p lazyPattern) String() string            { return p.expr }
func (p lazyPattern) MatchString(s string) bool { return p.compile().MatchString(s) }

// An Error says where and why a schema does not compile.
type Error struct {
	Path    []string // in the schema
	Problem string
	Hint    string
}

func (e *Error) Error() string { return e.Problem }

func explainSchema(err error) *Error {
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			if leaves := Leaves(v, nil); len(leaves) > 0 {
				l := leaves[0]
				return &Error{Path: l.Path, Problem: l.Text, Hint: "see the JSON Schema 2020-12 specification for what this keyword takes"}
			}
		}
	}
	if e, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		out := &Error{Problem: fmt.Sprintf("pattern %q cannot be checked here: %v", phrase.Clip(e.Regex), e.Err), Hint: "use a pattern without look-around and back references"}
		if _, fragment, ok := strings.Cut(e.URL, "#"); ok {
			if fragment, err := url.PathUnescape(fragment); err == nil {
				out.Path = strictjson.SplitPointer(fragment)
			}
		}
		return out
	}
	if e, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return &Error{Problem: fmt.Sprintf("refers to %q, which is outside the file", strings.TrimPrefix(e.URL, schemaBase)), Hint: "copy what it refers to into $defs"}
	}
	return &Error{Problem: strings.ReplaceAll(err.Error(), schemaURL, ""), Hint: "see the JSON Schema 2020-12 specification"}
}

// A Leaf is one problem that a validator found.
type Leaf struct {
	Path []string // in the instance
	Text string
	at   string // Path as a pointer
}

// Leaves returns the innermost problems, without the combinators around them, in a stable
// order. secrets, which is sorted, names values that must not be shown.
func Leaves(v *jsonschema.ValidationError, secrets []string) []Leaf {
	const maxText = 300 // bytes
	printer := message.NewPrinter(language.English)
	var out []Leaf
	var walk func(*jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		if len(v.Causes) > 0 {
			for _, c := range v.Causes {
				walk(c)
			}
			return
		}
		l := Leaf{Path: v.InstanceLocation, Text: v.ErrorKind.LocalizedString(printer), at: strictjson.Pointer(v.InstanceLocation)}
		secret := slices.ContainsFunc(l.Path, func(tok string) bool { return IsSecret(secrets, tok) })
		if secret {
			l.Text = "not valid (the value is secret and not shown)"
		}
		limit := func(how string, want, got *big.Rat) {
			if secret {
				return // the text contains the value
			}
			w, _ := want.Float64()
			g, _ := got.Float64()
			l.Text = printer.Sprintf("must be %s %v, got %v", how, w, g)
		}
		switch k := v.ErrorKind.(type) {
		case *kind.Required:
			slices.Sort(k.Missing)
			l.Text = "missing " + phrase.Quoted(k.Missing)
		case *kind.AdditionalProperties:
			slices.Sort(k.Properties)
			l.Text = "unknown " + phrase.Quoted(k.Properties)
		case *kind.FalseSchema:
			l.Text = "not allowed here"
		case *kind.Minimum:
			limit("at least", k.Want, k.Got)
		case *kind.Maximum:
			limit("at most", k.Want, k.Got)
		case *kind.ExclusiveMinimum:
			limit("more than", k.Want, k.Got)
		case *kind.ExclusiveMaximum:
			limit("less than", k.Want, k.Got)
		}
		l.Text = phrase.Cut(l.Text, maxText)
		l.Text = phrase.Cut(printable(l.Text), maxText)
		out = append(out, l)
	}
	walk(v)
	slices.SortFunc(out, func(a, b Leaf) int {
		return cmp.Or(strings.Compare(a.at, b.at), strings.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(out, func(a, b Leaf) bool {
		return a.Text == b.Text && slices.Equal(a.Path, b.Path)
	})
}

// printable escapes characters that are invisible or change the order of others.
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
