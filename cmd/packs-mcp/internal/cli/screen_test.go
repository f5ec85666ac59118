package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

func TestFit(t *testing.T) {
	for _, test := range []struct {
		name, text string
		columns    int
		want       string
	}{
		{"short", "a b c\n", 20, "a b c\n"},
		{"no limit", strings.Repeat("a ", 100), 0, strings.Repeat("a ", 100)},
		{"between words", "  one two three four five six", 20, "  one two three four\n    five six"},
		{"below the last column", "name  text that goes on and on", 24, "name  text that goes on\n      and on"},
		{"a column that is far to the right", "a name that is long  text goes on", 24, "a name that is long\n  text goes on"},
		{"a long word", strings.Repeat("x", 25), 20, strings.Repeat("x", 20) + "\n  xxxxx"},
		{"wide characters", strings.Repeat("漢", 12), 20, strings.Repeat("漢", 10) + "\n  漢漢"},
		{"styles have no width", "\x1b[1mone\x1b[0m two three four", 20, "\x1b[1mone\x1b[0m two three four"},
		{"a narrow terminal", "one two three four five six", 3, "one two three four\n  five six"},
		{"lines", "a\n\n  b\n", 20, "a\n\n  b\n"},
	} {
		if got := fit(test.text, test.columns); got != test.want {
			t.Errorf("%s: fit(%q, %d) = %q, want %q", test.name, test.text, test.columns, got, test.want)
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add("  name  text that goes on and on", 30)
	f.Add("漢漢漢漢漢漢漢漢漢漢漢漢漢漢 \x1b[1mx", 21)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		if strings.ContainsAny(text, "\x1b") || columns < narrowest || columns > 500 {
			t.Skip("foreign text has no switches")
		}
		got := fit(text, columns)
		for line := range strings.SplitSeq(got, "\n") {
			if Columns(line) > columns {
				t.Errorf("fit(%q, %d) has the line %q of %d", text, columns, line, Columns(line))
			}
		}
		letters := func(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(s) }
		if letters(got) != letters(text) {
			t.Errorf("fit(%q, %d) = %q, which loses or adds text", text, columns, got)
		}
	})
}

// A stream that is not a terminal gets lines unchanged, and colours only on request.
func TestScreenOfAPipe(t *testing.T) {
	for _, test := range []struct {
		flags   Flags
		environ string
		colors  bool
	}{
		{Flags{}, "", false},
		{Flags{Color: colorAuto}, "", false},
		{Flags{Color: colorAlways}, "", true},
		{Flags{Color: colorAlways}, "NO_COLOR=1", true}, // the flag asks for it in this run
		{Flags{Color: colorNever}, "", false},
		{Flags{Color: colorAlways, Plain: true}, "", false},
	} {
		var b bytes.Buffer
		env := Env{Flags: test.flags, Environ: []string{"TERM=xterm", test.environ}}
		s := env.Screen(&b)
		long := strings.Repeat("word ", 60)
		s.Problem("", diag.Diagnostic{Severity: diag.Error, Message: long})
		if got := strings.Contains(b.String(), "\x1b[31m"); got != test.colors || s.Colors() != test.colors {
			t.Errorf("%+v %s: colours = %v, want %v", test.flags, test.environ, got, test.colors)
		}
		if strings.Count(b.String(), "\n") != 1 || s.Moves() {
			t.Errorf("%+v: a pipe gets broken lines, or can be moved on: %q", test.flags, b.String())
		}
	}
}

func TestTable(t *testing.T) {
	var table Table
	table.Row("a", "漢字", "last")
	table.Row("\x1b[1mlonger\x1b[0m", "b", "")
	var b strings.Builder
	if err := table.Print(&b); err != nil {
		t.Fatal(err)
	}
	want := "a       漢字  last\n\x1b[1mlonger\x1b[0m  b\n"
	if b.String() != want {
		t.Errorf("Print() writes %q, want %q", b.String(), want)
	}
}
