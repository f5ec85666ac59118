package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
)

// A Context has the values that the client supplies when a tool is called: name
// ("cwd", "file", "url", "selection", "clipboard") → value. An absent name is
// unknown; an empty value is a value.
type Context map[string]string

// An Invocation is a command with everything filled in. It still has to be
// approved, looked up and confined.
type Invocation struct {
	Program string   // as in [Command.Program]
	Args    []string // without the program
	Env     []string // NAME=value, sorted; only what the tool declares
	Fixed   []string // those of Args, and values of Env, that depend on no parameter
	Cwd     string   // CwdWorkspace, CwdPackRoot, CwdProject, or a path that a placeholder gave and the caller must confine
	Stdin   []byte   // nil: empty
	Values  Values   // what was filled in: the arguments of the call, fixed values and what came from the context
}

// A LeadingDashError refuses a value that a program would take for an option.
type LeadingDashError struct {
	Param string // or "context.url" and its like
}

func (e *LeadingDashError) Error() string {
	return fmt.Sprintf("value of %q begins with -, which the program could take for an option", e.Param)
}

// A NULError refuses a value with a NUL character, which no argument can hold.
type NULError struct {
	Param string
}

func (e *NULError) Error() string {
	return fmt.Sprintf("value of %q has a NUL character", e.Param)
}

// A MissingContextError names context that the tool needs and that was not supplied.
type MissingContextError struct {
	Names  []string // keys of a [Context], sorted
	Params []string // parameters that a caller can give instead of some of them, sorted
}

func (e *MissingContextError) Error() string {
	s := "missing context: " + strings.Join(e.Names, ", ")
	if len(e.Params) > 0 {
		s += "; or give " + phrase.Quoted(e.Params)
	}
	return s
}

// Expand fills v, which [Tool.Check] of the same tool returned, and ctx into the
// tool's command. A value is never split, expanded again or quoted. A parameter from
// the context that is not in v gets its value from ctx, or else its default.
//
// Errors are [ErrDeclaredOnly] (wrapped), *[LeadingDashError], *[NULError],
// *[MissingContextError], and *[ArgumentError] when the context says something
// that is not valid for the parameter.
func (t *Tool) Expand(v Values, ctx Context) (*Invocation, error) {
	if t.Command == nil {
		return nil, fmt.Errorf("expanding tool %q: %w", t.Name, ErrDeclaredOnly)
	}
	x := &expander{context: ctx, input: t.schema()}
	v, err := t.fill(v, ctx, &x.missing)
	if err != nil {
		return nil, err
	}
	x.values = v
	inv := &Invocation{Program: t.Command.Program, Args: []string{}, Values: v}
	afterDashes := false
	for _, a := range t.Command.Args {
		args, err := x.argument(a, afterDashes)
		if err != nil {
			return nil, err
		}
		inv.Args = append(inv.Args, args...)
		if a.Fixed() {
			inv.Fixed = append(inv.Fixed, args...)
		}
		if lit, ok := a.Literal(); ok && lit == "--" {
			afterDashes = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Command.Env)) {
		value, ok, err := x.text(t.Command.Env[name], false)
		if err != nil {
			return nil, err
		}
		if ok {
			inv.Env = append(inv.Env, name+"="+value.text)
			if value.text != "" && t.Command.Env[name].Fixed() {
				inv.Fixed = append(inv.Fixed, value.text)
			}
		}
	}
	cwd, err := x.cwd(t.Command.Cwd)
	if err != nil {
		return nil, err
	}
	inv.Cwd = cwd
	if len(x.missing.Names) > 0 {
		slices.Sort(x.missing.Names)
		slices.Sort(x.missing.Params)
		x.missing.Names = slices.Compact(x.missing.Names)
		return nil, &x.missing
	}
	if t.Command.Stdin == StdinJSON {
		inv.Stdin = append(v.json(), '\n')
	}
	return inv, nil
}

type expander struct {
	values  Values
	context Context
	input   *schema.Input
	missing MissingContextError // needed but absent
}

// argument returns the arguments that a becomes: usually one, none if it has no
// value.
func (x *expander) argument(a template.Arg, afterDashes bool) ([]string, error) {
	if !a.Alone() || a.Pieces[0].Form == template.Plain || a.Pieces[0].Form == template.Fallback {
		r, ok, err := x.text(a, true)
		if err != nil || !ok {
			return nil, err
		}
		if r.dash != "" && !afterDashes {
			return nil, &LeadingDashError{r.dash}
		}
		return []string{r.text}, nil
	}

	p := a.Pieces[0]
	value, ok := x.lookup(p)
	if !ok {
		return nil, nil
	}
	var args []string
	if p.Form == template.Option {
		switch on := value.(type) {
		case bool:
			if on {
				return []string{p.Extra}, nil
			}
			return nil, nil
		}
		args = append(args, p.Extra)
	}
	elements, isList := value.([]any)
	if p.Form == template.Option || !isList {
		elements = []any{value}
	}
	for _, e := range elements {
		s := template.Render(e)
		if strings.IndexByte(s, 0) >= 0 {
			return nil, &NULError{p.Name}
		}
		if !afterDashes && dashes(e) && !x.mayDash(p.Name) {
			return nil, &LeadingDashError{p.Name}
		}
		args = append(args, s)
	}
	return args, nil
}

// filled is a template with its values.
type filled struct {
	text string
	dash string // the parameter whose value begins the text with a forbidden "-"; "" is none
}

// text fills a, which has no spread and no flag. It returns false if none of its
// placeholders has a value. With urls, values in a template that begins like a URL
// are percent-encoded.
func (x *expander) text(a template.Arg, urls bool) (filled, bool, error) {
	encode := urls && len(a.Pieces) > 0 && a.Pieces[0].Form == template.Literal && template.IsURL(a.Pieces[0].Extra)
	var b strings.Builder
	var dash string
	placeholders, values, numbers := 0, 0, 0
	for _, p := range a.Pieces {
		if p.Form == template.Literal {
			b.WriteString(p.Extra)
			continue
		}
		placeholders++
		s := p.Extra
		if value, ok := x.lookup(p); ok {
			s = template.Render(value)
			if strings.IndexByte(s, 0) >= 0 {
				return filled{}, false, &NULError{p.Name}
			}
			if b.Len() == 0 && dash == "" && (dashes(value) || strings.HasPrefix(s, "-")) && !x.mayDash(p.Name) {
				dash = p.Name
			}
			if _, ok := value.(json.Number); ok {
				numbers++
			}
		} else if p.Form != template.Fallback {
			continue
		}
		values++
		if encode {
			s = template.PercentEncode(s)
		}
		b.WriteString(s)
	}
	if placeholders > 0 && values == 0 {
		return filled{}, false, nil
	}
	if numbers == values {
		dash = "" // no text of a caller's goes on after the digits
	}
	return filled{b.String(), dash}, true, nil
}

func (x *expander) cwd(source string) (string, error) {
	if source == "" {
		return CwdWorkspace, nil
	}
	a, err := template.Parse(source)
	if err != nil {
		return "", err
	}
	r, ok, err := x.text(a, false)
	if err != nil {
		return "", err
	}
	if !ok || r.text == "" {
		return CwdWorkspace, nil
	}
	return r.text, nil
}

// lookup returns the value that p names. An absent value, null and an empty list
// count as no value. It records context that is needed but absent.
func (x *expander) lookup(p template.Piece) (any, bool) {
	if name, ok := strings.CutPrefix(p.Name, template.ContextPrefix); ok {
		value, ok := x.context[name]
		if !ok && (p.Form == template.Plain || p.Form == template.Spread) {
			x.missing.Names = append(x.missing.Names, name)
		}
		return value, ok
	}
	value, ok := x.values.fields[p.Name]
	if l, isList := value.([]any); isList && len(l) == 0 {
		return nil, false
	}
	return value, ok && value != nil
}

// mayDash reports whether the value of name may begin with "-": its schema says
// so, or the pack itself wrote that value as the default.
func (x *expander) mayDash(name string) bool {
	if x.values.defaulted[name] {
		return true
	}
	p := x.input.Param(name)
	return p != nil && p.AllowDash
}

// dashes reports whether v, or an element of it, is a text that begins with "-". A
// number is not an option.
func dashes(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, dashes)
	case json.Number:
		return false
	default:
		return strings.HasPrefix(template.Render(v), "-")
	}
}
