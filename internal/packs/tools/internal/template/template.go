// Package template parses the templates of a command's arguments, and formats values as the
// text of one.
//
// It does not fill templates: package tools does, which knows the values. No shell is
// involved, and nothing is quoted or expanded again.
package template

import (
	"fmt"
	"slices"
	"strings"
)

// ContextPrefix is the prefix of placeholders for values from the user's side.
const ContextPrefix = "context."

// IsContext reports whether name can follow ContextPrefix.
func IsContext(name string) bool {
	switch name {
	case "cwd", "file", "url", "selection", "clipboard":
		return true
	}
	return false
}

// An Arg is one parsed template: text with placeholders in it.
//
//	{{x}}           the value
//	{{x...}}        one argument per element; must be the whole argument
//	{{x:text}}      the value, or the text if there is none
//	{{x:--flag}}    for a boolean the flag or nothing, otherwise the flag and the value; must be the whole argument
//	{{context.cwd}} a value from the user's side: cwd, file, url, selection, clipboard
//	{{{{            a literal {{
//
// The zero Arg is the empty argument.
type Arg struct {
	Source string
	Pieces []Piece
}

// A Form is the kind of a piece.
type Form uint8

const (
	Literal  Form = iota // Extra is the text
	Plain                // {{name}}
	Spread               // {{name...}}
	Fallback             // {{name:extra}}
	Option               // {{name:extra}}, extra a flag
)

// A Piece is a placeholder, or the text between two.
type Piece struct {
	Form  Form
	Name  string // of a placeholder, without ContextPrefix
	Extra string
}

// String returns the template as written.
func (a Arg) String() string { return a.Source }

// Literal returns the text of an argument without placeholders.
func (a Arg) Literal() (text string, ok bool) {
	switch {
	case len(a.Pieces) == 0:
		return "", true
	case len(a.Pieces) == 1 && a.Pieces[0].Form == Literal:
		return a.Pieces[0].Extra, true
	default:
		return "", false
	}
}

// Names returns the names in the placeholders, in order, with repetitions.
func (a Arg) Names() []string {
	var names []string
	for _, p := range a.Pieces {
		if p.Form != Literal {
			names = append(names, p.Name)
		}
	}
	return names
}

// Fixed reports whether the caller of a tool cannot influence the argument: it contains
// only the tool's own text and the user's context.
func (a Arg) Fixed() bool {
	return !slices.ContainsFunc(a.Names(), func(name string) bool { return !strings.HasPrefix(name, ContextPrefix) })
}

// Alone reports whether the argument is a single placeholder.
func (a Arg) Alone() bool { return len(a.Pieces) == 1 && a.Pieces[0].Form != Literal }

// An Error says why a text is not a valid template.
type Error struct {
	Text    string
	Problem string
	Hint    string // what to write instead, or ""
}

func (e *Error) Error() string {
	return fmt.Sprintf("template %q: %s", e.Text, e.Problem)
}

// Parse parses one template. An error is a *[Error].
func Parse(s string) (Arg, error) {
	a := Arg{Source: s}
	fail := func(problem, hint string) (Arg, error) { return Arg{}, &Error{s, problem, hint} }
	if strings.Contains(s, "\x00") {
		return fail("a NUL character cannot be part of an argument", "remove it")
	}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			a.Pieces = append(a.Pieces, Piece{Form: Literal, Extra: lit.String()})
			lit.Reset()
		}
	}
	for rest := s; rest != ""; {
		text, after, found := strings.Cut(rest, "{{")
		lit.WriteString(text)
		if !found {
			break
		}
		if more, ok := strings.CutPrefix(after, "{{"); ok {
			lit.WriteString("{{")
			rest = more
			continue
		}
		body, after, closed := strings.Cut(after, "}}")
		if !closed {
			return fail("a placeholder is not closed", "write }} after it, or {{{{ for a literal {{")
		}
		p, problem, hint := parsePlaceholder(body)
		if problem != "" {
			return fail(problem, hint)
		}
		flush()
		a.Pieces = append(a.Pieces, p)
		rest = after
	}
	flush()
	if len(a.Pieces) > 1 {
		for _, p := range a.Pieces {
			switch p.Form {
			case Spread:
				return fail(fmt.Sprintf("{{%s...}} must stand alone", p.Name), fmt.Sprintf("make it an argument of its own, or write {{%s}} to join its elements", p.Name))
			case Option:
				return fail(fmt.Sprintf("{{%s:%s}} must stand alone", p.Name, p.Extra), "make the flag an argument of its own")
			}
		}
	}
	return a, nil
}

// parsePlaceholder parses the text between the braces. problem is "" if there is none.
func parsePlaceholder(body string) (p Piece, problem, hint string) {
	name, extra, hasExtra := strings.Cut(body, ":")
	p = Piece{Form: Plain, Name: name, Extra: extra}
	switch {
	case hasExtra && isFlag(extra):
		p.Form = Option
	case hasExtra:
		p.Form = Fallback
	case strings.HasSuffix(name, "..."):
		p.Form, p.Name = Spread, strings.TrimSuffix(name, "...")
	}
	const quoted = "write {{{{ for a literal {{"
	switch {
	case p.Name == "":
		return p, "a placeholder has no name", quoted
	case strings.ContainsAny(body, "{}"):
		return p, "a placeholder has a brace in it", quoted
	case strings.TrimSpace(p.Name) != p.Name:
		return p, fmt.Sprintf("spaces around the name %q", strings.TrimSpace(p.Name)), fmt.Sprintf("write {{%s}}", strings.TrimSpace(p.Name))
	}
	return p, "", ""
}

// isFlag reports whether the text after the colon is a flag and not a default: "-" and then
// a letter or "-". So "-1" and "-" are defaults.
func isFlag(s string) bool {
	if len(s) < 2 || s[0] != '-' {
		return false
	}
	c := s[1]
	return c == '-' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// String returns the placeholder as written, for messages.
func (p Piece) String() string {
	switch p.Form {
	case Literal:
		return p.Extra
	case Spread:
		return "{{" + p.Name + "...}}"
	case Fallback, Option:
		return "{{" + p.Name + ":" + p.Extra + "}}"
	default:
		return "{{" + p.Name + "}}"
	}
}
