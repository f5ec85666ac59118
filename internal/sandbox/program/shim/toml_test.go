package shim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTOML(t *testing.T) {
	show := func(entries []tomlEntry) (lines []string) {
		for _, e := range entries {
			line := strings.Join(e.key, "|")
			switch {
			case e.table:
				line = "[" + line + "]"
			case e.simple:
				line += "=" + strings.Join(e.values, ",")
			}
			lines = append(lines, line)
		}
		return lines
	}
	for text, want := range map[string][]string{
		"":                                 nil,
		"# a = \"b\"":                      nil,
		"a = \"b\" # c":                    {"a=b"},
		"a = '#b'":                         {"a=#b"},
		"a='b'\r\nc=\"d\"\r\n":             {"a=b", "c=d"},
		"[t]\na = \"b\"":                   {"[t]", "t|a=b"},
		"[ t . 'u v' ]\n\"x:y\" = \"b\"":   {"[t|u v]", "t|u v|x:y=b"},
		"[[t]]\na.b = ['c', \"d\",]":       {"[t]", "t|a|b=c,d"},
		"a = []":                           {"a="},
		"a = [\n 'b', # ]\n 'c'\n]\nd='e'": {"a=b,c", "d=e"},
		"a = 1\nb = true\nc = {d='e'}":     {"a", "b", "c"},
		"a = ['b', 1]\nc = [['d']]":        {"a", "c"},
		"a = \"\"\"\n[t]\nb='c'\n\"\"\"":   {"a"},
		"a = '''x'''\nb = ''''x''''":       {"a", "b"},
		"a = \"b\\\"]\"\nc='d'":            {"a", "c=d"},
		"a = ''":                           {"a="},
	} {
		got, err := parseTOML(text)
		if err != nil {
			t.Errorf("parseTOML(%q) = %v", text, err)
		} else if diff := cmp.Diff(want, show(got)); diff != "" {
			t.Errorf("parseTOML(%q) differs (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{
		"[t", "t]", "a = [", "a = 'b", "a = \"b\n\"", "a = \"\"\"b", "a", "= 'b'", "[]", "[a] b", "a. = 'b'", "a b = 'c'", "ä = 'b'", "'a",
		"a = \"b\\", "[t]]", "{", "a = 'b' 'c'", "a =", "a = " + strings.Repeat("[", 1<<18), "a = " + strings.Repeat("{a=", 1<<16),
	} {
		if got, err := parseTOML(text); err == nil {
			t.Errorf("parseTOML(%q) = %q, want an error", text, show(got))
		}
	}
}

func FuzzParseTOML(f *testing.F) {
	f.Add("[tools]\nnode = \"20\"\na.'b' = [\"c\", 'd'] # e\n[[x]]\ny = '''\nz'''")
	f.Add("a = \"\\")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseTOML(text)
		for _, e := range entries {
			if len(e.key) == 0 || err != nil {
				t.Errorf("parseTOML(%q) = %+v, %v", text, entries, err)
			}
			for _, v := range e.values {
				if strings.Contains(v, "\n") || !strings.Contains(text, v) {
					t.Errorf("parseTOML(%q) has %q", text, v)
				}
			}
		}
	})
}

// Errors do not repeat the file's content: it may be a link to a secret file.
func TestTOMLErrorsSayNothing(t *testing.T) {
	for text, want := range map[string]string{
		"hunter2":                    "it is not TOML at line 1",
		"a = 'b'\n\nhunter2 'x'\n":   "it is not TOML at line 3",
		"a = \"hunter2":              "it is not TOML at line 1",
		"a = hunter2":                "it is not TOML at line 1",
		"a = \"\\hunter2\"":          "it is not TOML at line 1",
		"[hunter2":                   "it is not TOML at line 1",
		"a = { hunter2 = 1, = 2 }\n": "it is not TOML at line 1",
	} {
		if _, err := parseTOML(text); err == nil || err.Error() != want {
			t.Errorf("parseTOML(%q) = %v, want %q", text, err, want)
		}
	}
}
