package tools

import (
	"fmt"
	"slices"
	"strings"
)

// contextPrefix begins the placeholders whose values come from the user.
const contextPrefix = "context."

// contextNames are what can follow it.
var contextNames = [...]string{"cwd", "file", "url", "selection", "clipboard"}

// An Arg is one parsed template: text with placeholders in it.
//
//	{{x}}           the value
//	{{x...}}        one argument per element; nothing may stand around it
//	{{x:text}}      the value, or the text when there is none
//	{{x:--flag}}    of a boolean the flag or nothing, otherwise the flag and the value; nothing may stand around it
//	{{context.cwd}} what the user's side knows: cwd, file, url, selection, clipboard
//	{{{{            a literal {{
//
// The zero Arg is the empty argument.
type Arg struct {
	source string
	pieces []piece
}

type form uint8

const (
	literal  form = iota // extra is the text
	plain                // {{name}}
	spread               // {{name...}}
	fallback             // {{name:extra}}
	option               // {{name:extra}}, extra a flag
)

type piece struct {
	form  form
	name  string // of a placeholder
	extra string
}

// String returns the template as it was written.
func (a Arg) String() string { return a.source }

// Literal returns the text of an argument without placeholders.
func (a Arg) Literal() (text string, ok bool) {
	switch {
	case len(a.pieces) == 0:
		return "", true
	case len(a.pieces) == 1 && a.pieces[0].form == literal:
		return a.pieces[0].extra, true
	default:
		return "", false
	}
}

// names returns what the placeholders name, in order, with repetitions.
func (a Arg) names() []string {
	var names []string
	for _, p := range a.pieces {
		if p.form != literal {
			names = append(names, p.name)
		}
	}
	return names
}

// fixed reports whether the caller of a tool has no say in the argument: what is
// in it is the tool's own, or the user's context.
func (a Arg) fixed() bool {
	return !slices.ContainsFunc(a.names(), func(name string) bool { return !strings.HasPrefix(name, contextPrefix) })
}

// alone reports whether the argument is one placeholder and nothing else.
func (a Arg) alone() bool { return len(a.pieces) == 1 && a.pieces[0].form != literal }

// A templateError says why a text is not a template.
type templateError struct {
	Text    string
	Offset  int // byte offset in Text
	Problem string
	Hint    string // what to write instead, or ""
}

func (e *templateError) Error() string {
	return fmt.Sprintf("template %q: %s", e.Text, e.Problem)
}

// parseArg parses one template. An error is a *[templateError].
func parseArg(s string) (Arg, error) {
	a := Arg{source: s}
	fail := func(offset int, problem, hint string) (Arg, error) {
		return Arg{}, &templateError{s, offset, problem, hint}
	}
	if i := strings.IndexByte(s, 0); i >= 0 {
		return fail(i, "a NUL character cannot be part of an argument", "remove it")
	}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			a.pieces = append(a.pieces, piece{form: literal, extra: lit.String()})
			lit.Reset()
		}
	}
	for pos := 0; pos < len(s); {
		open := strings.Index(s[pos:], "{{")
		if open < 0 {
			lit.WriteString(s[pos:])
			break
		}
		lit.WriteString(s[pos : pos+open])
		pos += open
		if strings.HasPrefix(s[pos:], "{{{{") {
			lit.WriteString("{{")
			pos += len("{{{{")
			continue
		}
		body, _, closed := strings.Cut(s[pos+2:], "}}")
		if !closed {
			return fail(pos, "a placeholder is not closed", "write }} after it, or {{{{ for a literal {{")
		}
		p, problem, hint := parsePlaceholder(body)
		if problem != "" {
			return fail(pos, problem, hint)
		}
		flush()
		a.pieces = append(a.pieces, p)
		pos += 2 + len(body) + 2
	}
	flush()
	if len(a.pieces) > 1 {
		for _, p := range a.pieces {
			switch p.form {
			case spread:
				return fail(0, fmt.Sprintf("{{%s...}} must stand alone", p.name), fmt.Sprintf("make it an argument of its own, or write {{%s}} to join its elements", p.name))
			case option:
				return fail(0, fmt.Sprintf("{{%s:%s}} must stand alone", p.name, p.extra), "make the flag an argument of its own")
			}
		}
	}
	return a, nil
}

// parsePlaceholder parses what stands between the braces. A problem is "" when
// there is none.
func parsePlaceholder(body string) (p piece, problem, hint string) {
	name, extra, hasExtra := strings.Cut(body, ":")
	p = piece{form: plain, name: name, extra: extra}
	switch {
	case hasExtra && isFlag(extra):
		p.form = option
	case hasExtra:
		p.form = fallback
	case strings.HasSuffix(name, "..."):
		p.form, p.name = spread, strings.TrimSuffix(name, "...")
	}
	const quoted = "write {{{{ for a literal {{"
	switch {
	case p.name == "":
		return p, "a placeholder has no name", quoted
	case strings.ContainsAny(body, "{}"):
		return p, "a placeholder has a brace in it", quoted
	case strings.TrimSpace(p.name) != p.name:
		return p, fmt.Sprintf("spaces around the name %q", strings.TrimSpace(p.name)), fmt.Sprintf("write {{%s}}", strings.TrimSpace(p.name))
	}
	return p, "", ""
}

// isFlag reports whether the text after the colon is a flag and not a default:
// "-", then a letter or "-". So "-1" and "-" are defaults.
func isFlag(s string) bool {
	if len(s) < 2 || s[0] != '-' {
		return false
	}
	c := s[1]
	return c == '-' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// templates returns every template of the command: arguments, environment,
// working folder.
func (c *Command) templates() []Arg {
	out := make([]Arg, 0, len(c.Args)+len(c.Env)+1)
	out = append(out, c.Args...)
	for _, a := range c.Env {
		out = append(out, a)
	}
	if a, err := parseArg(c.Cwd); err == nil {
		out = append(out, a)
	}
	return out
}
