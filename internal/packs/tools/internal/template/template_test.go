package template

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseArg(t *testing.T) {
	cmpPiece := cmp.AllowUnexported(Piece{})
	for _, tt := range []struct {
		in   string
		want []Piece
	}{
		{"", nil},
		{"text", []Piece{{Literal, "", "text"}}},
		{"{{x}}", []Piece{{Plain, "x", ""}}},
		{"a{{x}}b{{y}}", []Piece{{Literal, "", "a"}, {Plain, "x", ""}, {Literal, "", "b"}, {Plain, "y", ""}}},
		{"{{x...}}", []Piece{{Spread, "x", ""}}},
		{"{{x:text}}", []Piece{{Fallback, "x", "text"}}},
		{"{{x:}}", []Piece{{Fallback, "x", ""}}},
		{"{{x:a:b}}", []Piece{{Fallback, "x", "a:b"}}},
		{"{{x:--flag}}", []Piece{{Option, "x", "--flag"}}},
		{"{{x:-f}}", []Piece{{Option, "x", "-f"}}},
		{"{{x:--}}", []Piece{{Option, "x", "--"}}},
		{"{{x:-}}", []Piece{{Fallback, "x", "-"}}},
		{"{{x:-1}}", []Piece{{Fallback, "x", "-1"}}},
		{"{{context.cwd}}", []Piece{{Plain, "context.cwd", ""}}},
		{"{{{{", []Piece{{Literal, "", "{{"}}},
		{"{{{{.Names}}", []Piece{{Literal, "", "{{.Names}}"}}},
		{"{{{{x}} {{x}}", []Piece{{Literal, "", "{{x}} "}, {Plain, "x", ""}}},
		{"{{{{{{x}}", []Piece{{Literal, "", "{{"}, {Plain, "x", ""}}},
		{"{ {x} }}", []Piece{{Literal, "", "{ {x} }}"}}},
		{"{{größe}}", []Piece{{Plain, "größe", ""}}},
	} {
		got, err := Parse(tt.in)
		if err != nil {
			t.Errorf("parseArg(%q) = %v, want no error", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got.Pieces, cmpPiece); diff != "" {
			t.Errorf("parseArg(%q): -want +got\n%s", tt.in, diff)
		}
		if got.String() != tt.in {
			t.Errorf("parseArg(%q).String() = %q", tt.in, got.String())
		}
	}
}

func TestParseArgRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"{{x":               "not closed",
		"a {{x}":            "not closed",
		"{{}}":              "no name",
		"{{:a}}":            "no name",
		"{{...}}":           "no name",
		"{{ x }}":           "spaces",
		"{{{x}}}":           "brace",
		"{{x:{\"a\":1}}}":   "brace",
		"a{{x...}}":         "alone",
		"{{x...}}b":         "alone",
		"{{x:--flag}}b":     "alone",
		"{{x}}{{y:--flag}}": "alone",
		"a\x00b":            "NUL",
	} {
		_, err := Parse(in)
		e, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(e.Problem, want) {
			t.Errorf("parseArg(%q) = %v, want a templateError about %q", in, err, want)
		}
	}
}

func TestArgNames(t *testing.T) {
	a, err := Parse("{{x}}-{{y:1}}-{{x}}")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.Names(), []string{"x", "y", "x"}; !slices.Equal(got, want) {
		t.Errorf("Names() = %v, want %v", got, want)
	}
	if _, ok := a.Literal(); ok {
		t.Errorf("Literal() of %q = true, want false", a)
	}
}

func FuzzPlaceholder(f *testing.F) {
	for _, s := range []string{"", "{{x}}", "a{{x:text}}b", "{{x...}}", "{{x:--flag}}", "{{{{x}}", "{{context.cwd}}", "{{", "}}", "{{{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("parseArg(%q) = %v, want a *templateError", s, err)
			}
			return
		}
		// Formatting the pieces and parsing the result gives the same pieces.
		var b strings.Builder
		for _, p := range a.Pieces {
			if p.Form == Literal {
				b.WriteString(strings.ReplaceAll(p.Extra, "{{", "{{{{"))
			} else {
				b.WriteString(p.String())
			}
		}
		again, err := Parse(b.String())
		if err != nil {
			// "{" before a placeholder cannot be written this way: "{" + "{{x}}".
			if strings.Contains(b.String(), "{{{") {
				return
			}
			t.Fatalf("parseArg(%q) = %v, after parseArg(%q) was fine", b.String(), err, s)
		}
		if strings.Contains(b.String(), "{{{") {
			return
		}
		if diff := cmp.Diff(a.Pieces, again.Pieces, cmp.AllowUnexported(Piece{})); diff != "" {
			t.Errorf("parseArg(%q) and parseArg(%q) differ:\n%s", s, b.String(), diff)
		}
	})
}
