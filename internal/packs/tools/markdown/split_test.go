package markdown

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSplitCommand(t *testing.T) {
	for _, tt := range []struct {
		in    string
		want  []string
		marks string // what a shell would not pass on unchanged, separated by spaces
	}{
		{"", nil, ""},
		{" \n\t\n", nil, ""},
		{"p", []string{"p"}, ""},
		{"\n\n  p\ta  b \n\n", []string{"p", "a", "b"}, ""},
		{"p \\\n a \\\n\n", []string{"p", "a"}, ""},
		{"p a\\\nb", []string{"p", "ab"}, ""},
		{`p \`, []string{"p", `\`}, ""},
		{"p ''", []string{"p", ""}, ""},
		{`p "" a""b`, []string{"p", "", "ab"}, ""},
		{`p 'a "b" \n $X'`, []string{"p", `a "b" \n $X`}, ""},
		{`p "a 'b' \n \" \\ \$X"`, []string{"p", `a 'b' \n " \ $X`}, ""},
		{"p \"a\\\nb\"", []string{"p", "ab"}, ""},
		{"p 'a\nb' \"c\nd\"", []string{"p", "a\nb", "c\nd"}, ""},
		{`p a\ b \"c\' \\`, []string{"p", "a b", `"c'`, `\`}, ""},
		{`p \é "é" 日本`, []string{"p", "é", "é", "日本"}, ""},
		{"p a\u00a0b", []string{"p", "a\u00a0b"}, ""},
		{"p {{a b}} --x={{y:it's}}", []string{"p", "{{a b}}", "--x={{y:it's}}"}, ""},
		{`p "{{x:"}}" '{{y:'}}'`, []string{"p", `{{x:"}}`, `{{y:'}}`}, ""},
		{`p "{{x:\"}}"`, []string{"p", `{{x:\"}}`}, ""},
		{"p {{x\ny}}", nil, ""},
		{"p {{{{ a }}", []string{"p", "{{{{", "a", "}}"}, ""},
		{"p {{x:|}} {{y:$z}}", []string{"p", "{{x:|}}", "{{y:$z}}"}, ""},
		{"p | q>r 2>&1 && s", []string{"p", "|", "q>r", "2>&1", "&&", "s"}, "| > >& &&"},
		{"p $X $1 ${X} $(x) $ x$ $$", []string{"p", "$X", "$1", "${X}", "$(x)", "$", "x$", "$$"}, "$X $1 ${ $( ( ) $$"},
		{"p \"$X `y`\" '$X'", []string{"p", "$X `y`", "$X"}, "$X ` `"},
		{"p * a? [b] https://x/?y=[z]*", []string{"p", "*", "a?", "[b]", "https://x/?y=[z]*"}, "* ? ["},
		{"p ~ ~/x a~ #b c#", []string{"p", "~", "~/x", "a~", "#b", "c#"}, "~ ~ #"},
		{"X=1 p Y=2", []string{"X=1", "p", "Y=2"}, "X=1"},
		{"# c\np\n # d", []string{"p"}, ""},
	} {
		got, err := splitCommand(tt.in)
		if tt.want == nil && tt.in != "" && strings.TrimSpace(tt.in) != "" {
			if err == nil && got.next < 0 {
				t.Errorf("splitCommand(%q) = %v, want a second line", tt.in, got)
			}
			continue
		}
		if err != nil || got.next >= 0 {
			t.Errorf("splitCommand(%q) = %v, %v", tt.in, got, err)
			continue
		}
		var words, marks []string
		for _, w := range got.words {
			words = append(words, w.text)
		}
		for _, m := range got.marks {
			marks = append(marks, m.text)
			if !strings.HasPrefix(tt.in[m.at:], m.text) {
				t.Errorf("splitCommand(%q): %q is not at %d", tt.in, m.text, m.at)
			}
		}
		if diff := cmp.Diff(tt.want, words); diff != "" {
			t.Errorf("splitCommand(%q): -want +got\n%s", tt.in, diff)
		}
		if got := strings.Join(marks, " "); got != tt.marks {
			t.Errorf("splitCommand(%q) marks %q, want %q", tt.in, got, tt.marks)
		}
	}
	for in, at := range map[string]int{"p '": 2, `p "a`: 2, `p "a\"`: 2, "p it's\nq": 4, `p "`: 2} {
		_, err := splitCommand(in)
		if e, ok := errors.AsType[*quoteError](err); !ok || e.at != at {
			t.Errorf("splitCommand(%q) = %v, want a quote at %d", in, err, at)
		}
	}
	for in, next := range map[string]int{"p\nq": 2, "p\n\n  q r\n": 5, "# x\np\n# y\nq": 10} {
		if got, err := splitCommand(in); err != nil || got.next != next {
			t.Errorf("splitCommand(%q) = %v, %v, want a second command at %d", in, got, err, next)
		}
	}
}

// quoteWord quotes a word for splitCommand.
func quoteWord(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Quoted text is one word, whatever it contains, and the value of a placeholder never
// becomes another word.
func FuzzSplitCommand(f *testing.F) {
	for _, s := range []string{"p a b", `p 'a b' "c \" d" e\ f`, "p \\\n q", "p {{x}} '{{y:a b}}'", "p $X | q", "# c\np\nq", "p 'x", "p {{{{ }}", "\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := splitCommand(s)
		if err == nil {
			last := -1
			for _, w := range got.words {
				if w.at <= last || w.at >= len(s) {
					t.Errorf("splitCommand(%q): word %q at %d", s, w.text, w.at)
				}
				last = w.at
			}
			if got.next >= 0 && (got.next <= last || got.next >= len(s)) {
				t.Errorf("splitCommand(%q): next at %d", s, got.next)
			}
		}
		if !strings.Contains(s, "{{") {
			again, err := splitCommand("p " + quoteWord(s) + " z")
			if err != nil || len(again.words) != 3 || again.words[1].text != s || again.next >= 0 || len(again.marks) > 0 {
				t.Errorf("splitCommand of quoted %q = %v, %v", s, again, err)
			}
		}
		if err != nil || got.next >= 0 || !utf8.ValidString(s) {
			return
		}
		// Splitting the result again, after quoting it, changes nothing.
		var line []string
		for _, w := range got.words {
			if strings.Contains(w.text, "{{") {
				return
			}
			line = append(line, quoteWord(w.text))
		}
		again, err := splitCommand(strings.Join(line, " "))
		if err != nil || len(again.words) != len(got.words) {
			t.Fatalf("splitCommand(%q) = %v, again %v, %v", s, got, again, err)
		}
		for i, w := range again.words {
			if w.text != got.words[i].text {
				t.Errorf("splitCommand(%q): word %q, again %q", s, got.words[i].text, w.text)
			}
		}
	})
}
