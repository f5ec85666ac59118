package tools

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseArg(t *testing.T) {
	cmpPiece := cmp.AllowUnexported(piece{})
	for _, tt := range []struct {
		in   string
		want []piece
	}{
		{"", nil},
		{"text", []piece{{literal, "", "text"}}},
		{"{{x}}", []piece{{plain, "x", ""}}},
		{"a{{x}}b{{y}}", []piece{{literal, "", "a"}, {plain, "x", ""}, {literal, "", "b"}, {plain, "y", ""}}},
		{"{{x...}}", []piece{{spread, "x", ""}}},
		{"{{x:text}}", []piece{{fallback, "x", "text"}}},
		{"{{x:}}", []piece{{fallback, "x", ""}}},
		{"{{x:a:b}}", []piece{{fallback, "x", "a:b"}}},
		{"{{x:--flag}}", []piece{{option, "x", "--flag"}}},
		{"{{x:-f}}", []piece{{option, "x", "-f"}}},
		{"{{x:--}}", []piece{{option, "x", "--"}}},
		{"{{x:-}}", []piece{{fallback, "x", "-"}}},
		{"{{x:-1}}", []piece{{fallback, "x", "-1"}}},
		{"{{context.cwd}}", []piece{{plain, "context.cwd", ""}}},
		{"{{{{", []piece{{literal, "", "{{"}}},
		{"{{{{.Names}}", []piece{{literal, "", "{{.Names}}"}}},
		{"{{{{x}} {{x}}", []piece{{literal, "", "{{x}} "}, {plain, "x", ""}}},
		{"{{{{{{x}}", []piece{{literal, "", "{{"}, {plain, "x", ""}}},
		{"{ {x} }}", []piece{{literal, "", "{ {x} }}"}}},
		{"{{größe}}", []piece{{plain, "größe", ""}}},
	} {
		got, err := parseArg(tt.in)
		if err != nil {
			t.Errorf("parseArg(%q) = %v, want no error", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got.pieces, cmpPiece); diff != "" {
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
		_, err := parseArg(in)
		e, ok := errors.AsType[*templateError](err)
		if !ok || !strings.Contains(e.Problem, want) {
			t.Errorf("parseArg(%q) = %v, want a templateError about %q", in, err, want)
		}
	}
}

func TestArgNames(t *testing.T) {
	a, err := parseArg("{{x}}-{{y:1}}-{{x}}")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.names(), []string{"x", "y", "x"}; !slices.Equal(got, want) {
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
		a, err := parseArg(s)
		if err != nil {
			if _, ok := errors.AsType[*templateError](err); !ok {
				t.Fatalf("parseArg(%q) = %v, want a *templateError", s, err)
			}
			return
		}
		// Writing the pieces down again and parsing that gives the same pieces.
		var b strings.Builder
		for _, p := range a.pieces {
			if p.form == literal {
				b.WriteString(strings.ReplaceAll(p.extra, "{{", "{{{{"))
			} else {
				b.WriteString(p.String())
			}
		}
		again, err := parseArg(b.String())
		if err != nil {
			// "{" before a placeholder cannot be written so: "{" + "{{x}}".
			if strings.Contains(b.String(), "{{{") {
				return
			}
			t.Fatalf("parseArg(%q) = %v, after parseArg(%q) was fine", b.String(), err, s)
		}
		if strings.Contains(b.String(), "{{{") {
			return
		}
		if diff := cmp.Diff(a.pieces, again.pieces, cmp.AllowUnexported(piece{})); diff != "" {
			t.Errorf("parseArg(%q) and parseArg(%q) differ:\n%s", s, b.String(), diff)
		}
	})
}
