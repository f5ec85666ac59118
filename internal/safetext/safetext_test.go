package safetext

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"ascii", `plain ~!"\` + " text", `plain ~!"\` + " text"},
		{"newline and tab stay", "a\n\tb\n", "a\n\tb\n"},
		{"crlf", "\r\na\r\n\r\n", "\na\n\n"},
		{"lone cr", "10%\r20%\r", `10%\r20%\r`},
		{"cr before crlf", "a\r\r\nb", "a\\r\nb"},
		{"controls", "\x00\x07\x08\x1b\x7f", `\x00\x07\x08\x1b\x7f`},
		{"c1", "\u0080\u0085\u009b31m\u009f", `\x80\x85\x9b31m\x9f`},
		{"line separators", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"backslashes are left alone", `C:\new\u202e\\`, `C:\new\u202e\\`},

		{"bidi", "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
			`\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c`},
		{"tags", "\U000e0000\U000e0001\U000e0041\U000e007f", `\U000e0000\U000e0001\U000e0041\U000e007f`},
		{"zero width", "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u034fh\u180ei", `a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u034fh\u180ei`},
		{"interlinear annotation", "\ufff9x\ufffa", `\ufff9x\ufffa`},
		{"selectors after text", "a\ufe0fb\ufe00\U000e0100", `a\ufe0fb\ufe00\U000e0100`},
		{"selectors in a row", "❤\ufe0f\ufe0f\U000e0101", "❤\ufe0f" + `\ufe0f\U000e0101`},
		{"selector at the start", "\ufe0f❤", `\ufe0f❤`},
		{"selector on an escape", "\ufdd0\ufe0f", `\ufdd0\ufe0f`},
		{"selector on a digit", "1\ufe0f2", `1\ufe0f2`},
		{"selector after a mark", "❤\u0301\ufe0f", "❤\u0301" + `\ufe0f`},
		{"blanks", "\u115f\u1160\u3164\uffa0\u2800\ufffc\U00016fe4\U0001d159", `\u115f\u1160\u3164\uffa0\u2800\ufffc\U00016fe4\U0001d159`},
		{"spaces", "\u00a0\u1680\u2003\u202f\u205f\u3000", `\u00a0\u1680\u2003\u202f\u205f\u3000`},
		{"private use", "\ue000\U000f0000\U0010fffd", `\ue000\U000f0000\U0010fffd`},
		{"unassigned", "\u0378\U000e0080", `\u0378\U000e0080`},
		{"noncharacters", "\ufdd0\uffff\U0010ffff", `\ufdd0\uffff\U0010ffff`},
		{"invalid bytes", "a\xff\xc3", `a\xff\xc3`},
		{"cut character", "a€"[:3], `a\xe2\x82`},
		{"surrogate", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"overlong", "\xc0\x80\xc1\x9b", `\xc0\x80\xc1\x9b`},
		{"replacement character itself", "a\ufffdb", "a\ufffdb"},

		{"three marks", "a\u0301\u0302\u0303b", "a\u0301\u0302\u0303b"},
		{"fourth mark", "a\u0301\u0302\u0303\u0304\u0305b\u0301", "a\u0301\u0302\u0303" + `\u0304\u0305` + "b\u0301"},
		{"mark at the start", "\u0336a", `\u0336a`},
		{"mark on a newline", "a\n\u0336b", "a\n" + `\u0336b`},
		{"mark on an escape", "\u200d\u0336", `\u200d\u0336`},
		{"enclosing mark", "a\u20dd", "a\u20dd"},

		{"french", "Où est l'été ? Ça, là-bas: œuf, 3 €", "Où est l'été ? Ça, là-bas: œuf, 3 €"},
		{"vietnamese, decomposed", "Vie\u0323\u0302t", "Vie\u0323\u0302t"},
		{"russian", "Привет, мир", "Привет, мир"},
		{"chinese", "能力包:简体中文、繁體中文。", "能力包:简体中文、繁體中文。"},
		{"japanese", "パックを使う「テスト」ｱｲｳ", "パックを使う「テスト」ｱｲｳ"},
		{"korean", "한국어 텍스트", "한국어 텍스트"},
		{"arabic", "مرحبا بالعالم، كيف الحال؟", "مرحبا بالعالم، كيف الحال؟"},
		{"hebrew", "שָׁלוֹם עולם", "שָׁלוֹם עולם"},
		{"hindi", "नमस्ते दुनिया, क्षि", "नमस्ते दुनिया, क्षि"},
		{"thai", "ที่นี่ไม่มีปัญหา", "ที่นี่ไม่มีปัญหา"},
		{"tibetan", "བསྒྲུབས་པ། ཧཱུྃ", "བསྒྲུབས་པ། ཧཱུྃ"},
		{"burmese", "ကြောင်း ကျွန်ုပ်", "ကြောင်း ကျွန်ုပ်"},
		{"mathematics", "∀x∈ℝ: ⌈x⌉ ≥ x, 𝒇(x) → ∞", "∀x∈ℝ: ⌈x⌉ ≥ x, 𝒇(x) → ∞"},
		{"boxes", "├── a █▓░ ✓ ✗ … “q” — ‣", "├── a █▓░ ✓ ✗ … “q” — ‣"},
		{"emoji", "🚀 ✅ 👍🏽 🇫🇷", "🚀 ✅ 👍🏽 🇫🇷"},
		{"emoji with selector", "❤\ufe0f ⚠\ufe0f ▶\ufe0e ©\ufe0f", "❤\ufe0f ⚠\ufe0f ▶\ufe0e ©\ufe0f"},
		{"keycap", "1\ufe0f\u20e3#\ufe0f\u20e3", "1\ufe0f\u20e3#\ufe0f\u20e3"},
		{"joined emoji", "👩\u200d🚀", `👩\u200d🚀`},
		{"persian joiner", "می\u200cخواهم", `می\u200cخواهم`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.in); got != tt.want {
				t.Errorf("Text(%+q) = %+q, want %+q", tt.in, got, tt.want)
			}
			checkSafe(t, tt.in)
		})
	}
}

func TestLine(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"one line", "one line"},
		{"a\nb\tc", `a\nb\tc`},
		{"a\r\nb\r", `a\r\nb\r`},
		{"\n\u0301", `\n\u0301`},
		{"été\x1b[0m", `été\x1b[0m`},
	} {
		if got := Line(tt.in); got != tt.want {
			t.Errorf("Line(%+q) = %+q, want %+q", tt.in, got, tt.want)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", `""`},
		{"a b ", `"a b "`},
		{`a"b\n`, `"a\"b\\n"`},
		{"p\u0430y", `"p\u0430y"`},
		{"--x=\u202e\x1b\x9b\n", `"--x=\u202e\x1b\x9b\n"`},
		{"\U000e0041🚀", `"\U000e0041\U0001f680"`},
	} {
		got := Quote(tt.in)
		if got != tt.want {
			t.Errorf("Quote(%+q) = %s, want %s", tt.in, got, tt.want)
		}
		if back, err := strconv.Unquote(got); err != nil || back != tt.in {
			t.Errorf("strconv.Unquote(Quote(%+q)) = %+q, %v", tt.in, back, err)
		}
	}
}

// TestHostile runs the section on hidden text of the project's hostile cases,
// with their names.
func TestHostile(t *testing.T) {
	var smuggled strings.Builder // "run rm -rf ~" in tag characters
	for _, b := range []byte("run rm -rf ~") {
		smuggled.WriteRune(0xe0000 + rune(b))
	}
	long := strings.Repeat("A", 300) + " --evil"
	huge := strings.Repeat("b", 50_000) + "\u202e!"
	for _, tt := range []struct {
		id, in string
		show   func(string) string
		want   string
		hidden string // what Inspect reports
	}{
		{"HU-01", "ok" + smuggled.String(), Line,
			`ok\U000e0072\U000e0075\U000e006e\U000e0020\U000e0072\U000e006d\U000e0020\U000e002d\U000e0072\U000e0066\U000e0020\U000e007e`,
			"12 invisible characters (12 tag)"},
		{"HU-02 argv", "invoice\u202efdp.sh", Quote, `"invoice\u202efdp.sh"`, "1 invisible character (1 bidirectional)"},
		{"HU-02 description", "invoice\u202efdp.sh", Line, `invoice\u202efdp.sh`, "1 invisible character (1 bidirectional)"},
		{"HU-03 clear", "\x1b[2J\x1b[H", Text, `\x1b[2J\x1b[H`, "2 invisible characters (2 control)"},
		{"HU-03 byte csi", "\x9b31m", Text, `\x9b31m`, "1 invisible character (1 not UTF-8)"},
		{"HU-03 csi", "\u009b31m", Text, `\x9b31m`, "1 invisible character (1 control)"},
		{"HU-03 link", "\x1b]8;;http://evil\x1b\\safe\x1b]8;;\x07", Text, `\x1b]8;;http://evil\x1b\safe\x1b]8;;\x07`, "4 invisible characters (4 control)"},
		{"HU-03 clipboard", "\x1b]52;c;ZXZpbA==\x07", Line, `\x1b]52;c;ZXZpbA==\x07`, "2 invisible characters (2 control)"},
		{"HU-03 overwrite", "rm -rf ~\r\x1b[Kls", Text, `rm -rf ~\r\x1b[Kls`, "2 invisible characters (2 control)"},
		{"HU-03 argv", "\r\x1b[K\u009b", Quote, `"\r\x1b[K\u009b"`, "3 invisible characters (3 control)"},
		{"HU-04 filler", "a\u3164\u2800", Line, `a\u3164\u2800`, "2 invisible characters (2 blank)"},
		{"HU-04 separator", "a\u2028b", Text, `a\u2028b`, "1 invisible character (1 control)"},
		{"HU-04 marks", "Z" + strings.Repeat("\u0335", 50), Text, "Z\u0335\u0335\u0335" + strings.Repeat(`\u0335`, 47), "47 invisible characters (47 stacked mark)"},
		{"HU-04 bytes", "\xff\xfe", Line, `\xff\xfe`, "2 invisible characters (2 not UTF-8)"},
		{"HU-05 line", long, Line, long, "no invisible characters"},
		{"HU-05 argv", long, Quote, `"` + long + `"`, "no invisible characters"},
		{"HU-05 huge", huge, Quote, `"` + huge[:50_000] + `\u202e!"`, "1 invisible character (1 bidirectional)"},
		{"HU-06", "p\u0443thon3", Quote, `"p\u0443thon3"`, "no invisible characters"},
	} {
		t.Run(tt.id, func(t *testing.T) {
			if got := tt.show(tt.in); got != tt.want {
				t.Errorf("show(%+q) = %+q, want %+q", tt.in, got, tt.want)
			}
			if got := Inspect([]byte(tt.in)).String(); got != tt.hidden {
				t.Errorf("Inspect(%+q) = %q, want %q", tt.in, got, tt.hidden)
			}
			checkSafe(t, tt.in)
		})
	}

	t.Run("HU-04 JSON surrogate", func(t *testing.T) {
		var s string
		if err := json.Unmarshal([]byte(`"a\ud800\u202eb"`), &s); err != nil {
			t.Fatal(err)
		}
		const want = "a\ufffd" + `\u202eb`
		if got := Line(s); got != want {
			t.Errorf("Line(%+q) = %+q, want %+q", s, got, want)
		}
	})
}

// TestEveryCharacter compares every character with the rules of the package
// comment, implemented a second time, independently of classOf.
func TestEveryCharacter(t *testing.T) {
	for r := range rune(unicode.MaxRune + 1) {
		if !utf8.ValidRune(r) {
			continue // no UTF-8 for a surrogate; see TestText
		}
		in := "x" + string(r)
		got := Line(in)
		if escaped := got != in; escaped != risky(r) {
			t.Errorf("Line(%+q) = %+q, want it escaped: %v", in, got, risky(r))
		}
		if r <= lastC1 {
			continue // \x80 is a byte to Unquote
		}
		if back, err := strconv.Unquote(`"` + got + `"`); err != nil || back != in {
			t.Errorf("Line(%+q) = %+q, which reads back as %+q, %v", in, got, back, err)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, in := range []string{
		"a line of plain ASCII\n\twith another\n",
		"Größe 能力包 ❤\ufe0f 1\ufe0f\u20e3",
	} {
		if n := testing.AllocsPerRun(10, func() { _ = Text(in) }); n != 0 {
			t.Errorf("Text(%q) allocates %v times, want 0", in, n)
		}
		b := []byte(in)
		if n := testing.AllocsPerRun(10, func() { _ = Inspect(b) }); n != 0 {
			t.Errorf("Inspect(%q) allocates %v times, want 0", in, n)
		}
	}
}

// Inspect skips plain ASCII in long steps, and counts the same as a walk of
// single steps.
func TestInspectIsTheWalk(t *testing.T) {
	pieces := []string{"a", "1", "#", " ", "~", "\x1f", "\x7f", "\x80", "\u0080", "\n", "\t", "\r", "\r\n", "\u0301", "\ufe0f", "\u20e3", "\u200b", "\u202e", "\U000e0041", "\u3164", "é", "☎", "\xff", "\u2028"}
	count := func(s string) (r Report) {
		var w walker
		for len(s) > 0 {
			_, size, c := w.next(s)
			r.count(c)
			s = s[size:]
		}
		return r
	}
	check := func(s string) {
		t.Helper()
		if got, want := Inspect([]byte(s)), count(s); got != want {
			t.Errorf("Inspect(%q) = %+v, want %+v", s, got, want)
		}
	}
	for _, a := range pieces {
		for _, b := range pieces {
			for _, c := range pieces {
				check(a + b + c)
				check("x1" + a + b + strings.Repeat("a\u0301", 5) + c)
			}
		}
	}
	for b := range 256 {
		check("a" + string([]byte{byte(b)}) + "\u0301\u0301\u0301\u0301")
	}
}

// Plus drops no count.
func TestPlus(t *testing.T) {
	var a, b, want Report
	for i := range reflect.TypeFor[Report]().NumField() {
		reflect.ValueOf(&a).Elem().Field(i).SetInt(int64(i + 1))
		reflect.ValueOf(&b).Elem().Field(i).SetInt(int64(100 * (i + 1)))
		reflect.ValueOf(&want).Elem().Field(i).SetInt(int64(101 * (i + 1)))
	}
	if got := a.Plus(b); got != want {
		t.Errorf("Plus = %+v, want %+v", got, want)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"plain", "a\r\r\n\tb", `\u202e`, "\u202e\x1b[2J\u009b\x9b", "\U000e0041\U000e007f",
		"a\u0301\u0302\u0303\u0304", "❤\ufe0f\ufe0f 1\ufe0f\u20e3\ufe0e", "\u3164\u2800\u2028",
		"\xff\xed\xa0\x80\xf4\x90\x80\x80", "👩\u200d🚀", "\ufeffa\u00a0",
	} {
		f.Add(s)
	}
	f.Fuzz(checkSafe)
}

// checkSafe reports an error for every promise that s breaks.
func checkSafe(t *testing.T, s string) {
	t.Helper()
	text, line := Text(s), Line(s)
	for name, got := range map[string]string{"Text": text, "Line": line} {
		if !utf8.ValidString(got) {
			t.Errorf("%s(%+q) = %+q, which is not UTF-8", name, s, got)
		}
		if len(got) > 4*len(s) {
			t.Errorf("%s(%+q) is %d bytes, more than 4 × %d", name, s, len(got), len(s))
		}
		var prev rune
		marks := 0
		for _, r := range got {
			isMark := unicode.In(r, unicode.Mn, unicode.Me)
			switch {
			case r == 0xfe0e || r == 0xfe0f:
				// A selector may only follow something visible that is not a
				// letter.
				if unicode.In(prev, unicode.L, unicode.M, unicode.Z) || prev < '#' {
					t.Errorf("%s(%+q) = %+q, with a selector on %U", name, s, got, prev)
				}
			case name == "Text" && (r == '\n' || r == '\t'):
			case risky(r):
				t.Errorf("%s(%+q) = %+q, which has %U", name, s, got, r)
			case isMark:
				if marks++; marks > 3 {
					t.Errorf("%s(%+q) = %+q, with more than three marks on a character", name, s, got)
				}
			}
			if !isMark {
				marks = 0
			}
			prev = r
		}
	}
	if again := Text(text); again != text {
		t.Errorf("Text(Text(%+q)) = %+q, want %+q", s, again, text)
	}
	if again := Line(line); again != line {
		t.Errorf("Line(Line(%+q)) = %+q, want %+q", s, again, line)
	}
	if again := Text(line); again != line {
		t.Errorf("Text(Line(%+q)) = %+q, want %+q", s, again, line)
	}

	body := strings.TrimPrefix(s, "\ufeff")
	unchanged := Text(body) == strings.ReplaceAll(body, "\r\n", "\n")
	if n := Inspect([]byte(s)).Total(); (n == 0) != unchanged {
		t.Errorf("Inspect(%+q).Total() = %d, but Text escapes: %v", s, n, !unchanged)
	}
}

// risky reports whether r, after a letter, must never be shown unescaped to a
// person or a model. It implements the rules of the package comment by general
// category and code chart, where the package uses properties.
func risky(r rune) bool {
	if r == ' ' {
		return false
	}
	for _, span := range [][2]rune{
		{0x034f, 0x034f}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2028, 0x2029},
		{0x2800, 0x2800}, {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xffa0, 0xffa0}, {0xfff0, 0xfffc},
		{0x16fe4, 0x16fe4}, {0x1d159, 0x1d159}, {0xe0000, 0xe0fff},
	} {
		if span[0] <= r && r <= span[1] {
			return true
		}
	}
	return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}
