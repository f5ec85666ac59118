package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// The time of a validator is not bounded by the size of the schema and the value: with
// references and combinators it visits them repeatedly, and a small file can cause more
// visits than there are atoms. Since a validator cannot be interrupted, count its work
// beforehand.
const (
	maxParts   = 4_000   // objects and booleans in a schema; compile time grows with the square
	maxInPlace = 10_000  // subschemas that may apply to one value
	maxChain   = 100     // of those, nested in each other
	maxWork    = 400_000 // cost of validating one value, in units of a few microseconds
	maxPattern = 20_000  // instructions in all regular expressions of a schema
)

// MaxDepth is how deeply a value may be nested that is validated.
const MaxDepth = 64

// inPlace calls visit for the subschemas of s that apply to the same value as s, as often
// as a validator does.
func inPlace(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	visitAll(visit, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		visitAll(visit, s.DynamicRef.Ref)
	}
	visitAll(visit, s.AllOf...)
	visitAll(visit, s.AnyOf...)
	visitAll(visit, s.OneOf...)
	for _, sub := range s.DependentSchemas {
		visitAll(visit, sub)
	}
	for _, sub := range s.Dependencies {
		visitAny(visit, sub)
	}
}

// inside calls visit for the subschemas of s that apply to the values in the value.
func inside(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	for _, sub := range s.Properties {
		visitAll(visit, sub)
	}
	for _, sub := range s.PatternProperties {
		visitAll(visit, sub)
	}
	visitAny(visit, s.AdditionalProperties)
	visitAny(visit, s.Items)
	visitAny(visit, s.AdditionalItems)
	visitAll(visit, s.PrefixItems...)
	visitAll(visit, s.PropertyNames, s.UnevaluatedProperties, s.UnevaluatedItems, s.Contains, s.Items2020, s.ContentSchema)
}

func visitAll(visit func(*jsonschema.Schema), list ...*jsonschema.Schema) {
	for _, s := range list {
		if s != nil {
			visit(s)
		}
	}
}

// visitAny is visitAll for a field with a schema, several schemas, or something else.
func visitAny(visit func(*jsonschema.Schema), field any) {
	switch field := field.(type) {
	case *jsonschema.Schema:
		visitAll(visit, field)
	case []*jsonschema.Schema:
		visitAll(visit, field...)
	}
}

// countable refuses a schema with too many parts, and one with dynamic references: their
// targets depend on the path to them, so their cost cannot be counted. Those in the
// meta-schemas of JSON Schema stay; see [Meter.own].
func countable(n *strictjson.Node, parts *int) error {
	if n.Kind == strictjson.Object || n.Kind == strictjson.Boolean {
		*parts++
	}
	if *parts > maxParts {
		return &Error{Problem: fmt.Sprintf("the schema has more than %d parts", maxParts), Hint: "make it simpler"}
	}
	if a, b := n.Get("$dynamicAnchor"), n.Get("$recursiveAnchor"); a != nil && a.Kind == strictjson.Text || b != nil && b.Kind == strictjson.Boolean {
		return &Error{Problem: "dynamic references cannot be checked here", Hint: "write $anchor and $ref"}
	}
	for _, child := range n.Children() {
		if err := countable(child, parts); err != nil {
			return err
		}
	}
	return nil
}

// weighSchema refuses a schema under which even a small value is expensive.
func weighSchema(root *jsonschema.Schema) error {
	memo := make(map[*jsonschema.Schema]weight)
	reached := map[*jsonschema.Schema]bool{root: true}
	todo := []*jsonschema.Schema{root}
	push := func(s *jsonschema.Schema) {
		if !reached[s] {
			reached[s] = true
			todo = append(todo, s)
		}
	}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch w := weigh(s, memo, 0); {
		case w.cyclic:
			return &Error{Problem: "the schema refers to itself without going into a value, which has no end", Hint: "let only properties or items refer back"}
		case w.visits > maxInPlace || w.chain > maxChain:
			return &Error{Problem: "the schema's references and combinators multiply too often", Hint: "make it simpler"}
		}
		inPlace(s, push)
		inside(s, push)
	}
	return nil
}

// A weight is the cost of one value under a schema, without the values in it.
type weight struct {
	visits int
	chain  int
	cyclic bool
}

// weigh returns the weight of s at a nesting of depth. Fifty schemas that each refer to the
// next twice are a small file, and 2^50 visits.
func weigh(s *jsonschema.Schema, memo map[*jsonschema.Schema]weight, depth int) weight {
	if w, ok := memo[s]; ok {
		return w
	}
	if depth > maxChain {
		return weight{chain: maxChain + 1} // unused: the schema around s is refused
	}
	memo[s] = weight{cyclic: true} // for a cycle that comes back before the result is known
	sum := weight{visits: 1, chain: 1}
	inPlace(s, func(sub *jsonschema.Schema) {
		w := weigh(sub, memo, depth+1)
		sum.visits = min(sum.visits+w.visits, maxInPlace+1)
		sum.chain = max(sum.chain, w.chain+1)
		sum.cyclic = sum.cyclic || w.cyclic
	})
	memo[s] = sum
	return sum
}

// A Meter estimates the cost of validating values before it happens. The zero value is
// ready to use.
type Meter struct {
	steps int // steps of the estimate itself
	Spent int
	memo  map[visit]int
	sizes map[*jsonschema.Schema]int // :: schema → size of its const and enum
}

type visit struct {
	schema *jsonschema.Schema
	value  *strictjson.Node
}

// Allows reports whether validating v against s, together with all earlier values, is cheap
// enough.
func (m *Meter) Allows(s *jsonschema.Schema, v *strictjson.Node) bool {
	if m.memo == nil {
		m.memo = make(map[visit]int)
		m.sizes = make(map[*jsonschema.Schema]int)
	}
	m.Spent += m.cost(s, v)
	return m.Spent <= maxWork && m.steps <= maxWork
}

// cost returns an upper bound for validating v under s: every branch is visited and nothing
// ends early. Above maxWork it is not exact.
func (m *Meter) cost(s *jsonschema.Schema, v *strictjson.Node) int {
	m.steps++
	if m.steps > maxWork {
		return maxWork + 1
	}
	if s.Bool != nil {
		return 1
	}
	if cost, ok := m.memo[visit{s, v}]; ok {
		return cost
	}
	sum := m.own(s, v)
	add := func(sub *jsonschema.Schema, v *strictjson.Node) {
		if sum <= maxWork {
			sum += m.cost(sub, v)
		}
	}
	inPlace(s, func(sub *jsonschema.Schema) { add(sub, v) })
	each := func(v *strictjson.Node) func(*jsonschema.Schema) {
		return func(sub *jsonschema.Schema) { add(sub, v) }
	}
	switch v.Kind {
	case strictjson.Object:
		for _, m := range v.Members {
			visit := each(m.Value)
			visitAll(visit, s.Properties[m.Key], s.UnevaluatedProperties)
			for p, sub := range s.PatternProperties {
				sum += 1 + matching(p, m.Key)
				visit(sub)
			}
			visitAny(visit, s.AdditionalProperties)
			if s.PropertyNames != nil {
				add(s.PropertyNames, &strictjson.Node{Kind: strictjson.Text, Text: m.Key})
			}
			if sum > maxWork {
				break
			}
		}
	case strictjson.List:
		for i, item := range v.Items {
			visit := each(item)
			if list, ok := s.Items.([]*jsonschema.Schema); !ok {
				visitAny(visit, s.Items)
			} else if i < len(list) {
				visit(list[i])
			}
			if i < len(s.PrefixItems) {
				visit(s.PrefixItems[i])
			}
			visitAny(visit, s.AdditionalItems)
			visitAll(visit, s.Items2020, s.Contains, s.UnevaluatedItems)
			if sum > maxWork {
				break
			}
		}
	}
	m.memo[visit{s, v}] = sum
	return sum
}

// own returns the cost of s itself, which grows with the length of its error message.
func (m *Meter) own(s *jsonschema.Schema, v *strictjson.Node) int {
	size, ok := m.sizes[s]
	if !ok {
		if s.Const != nil {
			size += valueSize(*s.Const)
		}
		if s.Enum != nil {
			size += valueSize(s.Enum.Values)
		}
		size = size/16 + len(s.Required)
		m.sizes[s] = size
	}
	own := 1 + size + len(v.Items) + len(v.Members)
	if v.Kind == strictjson.Text {
		own += len(v.Text) / 64
		if s.Pattern != nil {
			own += matching(s.Pattern, v.Text)
		}
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		// The meta-schema has a reference from one vocabulary to all of them, which is not
		// counted. Without this factor, a unit takes ten times as long.
		const vocabularies = 20
		own *= vocabularies
	}
	if s.UniqueItems && v.Kind == strictjson.List {
		// Up to twenty items are compared with each other, number by number.
		own += v.End - v.Start
	}
	return own
}

// valueSize returns the approximate size of a decoded JSON value in bytes.
func valueSize(v any) int {
	size := 8
	switch v := v.(type) {
	case string:
		size += len(v)
	case []any:
		for _, e := range v {
			size += valueSize(e)
		}
	case map[string]any:
		for key, e := range v {
			size += len(key) + valueSize(e)
		}
	}
	return size
}

// A pattern is a regular expression with its size.
type pattern struct {
	*regexp.Regexp
	size int // instructions
}

// matching returns the cost of searching s for p.
func matching(p jsonschema.Regexp, s string) int {
	const instructionsPerUnit = 200
	if p, ok := p.(*pattern); ok {
		return len(s) * p.size / instructionsPerUnit
	}
	return len(s)
}

// patterns returns an engine for the regular expressions of one schema. Compiling copies
// repeated parts: the seven bytes "a{1000}" become a thousand instructions.
func patterns() jsonschema.RegexpEngine {
	left := maxPattern
	known := make(map[string]*pattern)
	return func(expr string) (jsonschema.Regexp, error) {
		if p := known[expr]; p != nil {
			return p, nil
		}
		tree, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			return nil, err
		}
		size := instructions(tree)
		if size > left {
			return nil, fmt.Errorf("the schema's patterns come to more than %d steps", maxPattern)
		}
		left -= size
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil, err
		}
		p := &pattern{re, size}
		known[expr] = p
		return p, nil
	}
}

// instructions returns the approximate number of instructions of re. A character class
// counts once, however often it repeats.
func instructions(re *syntax.Regexp) int {
	repeated, once := unfold(re)
	return min(repeated+once, maxPattern+1)
}

func unfold(re *syntax.Regexp) (repeated, once int) {
	repeated = 1
	switch re.Op {
	case syntax.OpLiteral:
		repeated += len(re.Rune)
	case syntax.OpCharClass:
		const runesPerInstruction = 16
		once = len(re.Rune) / runesPerInstruction
	}
	for _, sub := range re.Sub {
		r, o := unfold(sub)
		repeated, once = min(repeated+r, maxPattern+1), min(once+o, maxPattern+1)
	}
	if re.Op == syntax.OpRepeat {
		repeated = min(repeated*max(re.Min, re.Max, 1), maxPattern+1)
	}
	return repeated, once
}
