package frontmatter

import (
	"fmt"
	"strings"
	"testing"
)

// A block that needs too many steps is abandoned as soon as they are used up, with an error
// that says so. With enough steps, the limit changes nothing.
func TestSteps(t *testing.T) {
	block := func(size int, line func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(line(i))
		}
		return b.String()
	}
	plain := func(i int) string { return fmt.Sprintf("a%d: b\n", i) }
	yaml := func(i int) string { return fmt.Sprintf("a%d: [b, c]\n", i) }
	broken := func(i int) string { return fmt.Sprintf("a%d: [b\n", i) }
	for name, c := range map[string]struct {
		block string
		steps int // available steps
		code  string
		took  [2]int // minimum and maximum
	}{
		"nothing":                   {"", 0, "", [2]int{}},
		"plain lines":               {block(500, plain), 0, "", [2]int{}},
		"YAML":                      {block(1000, yaml), MaxSteps, "", [2]int{stepsOfParse + 1000, 30_000}},
		"YAML, and few steps":       {block(1000, yaml), 1000, "1:1 " + CodeUnread, [2]int{}},
		"YAML, and one step less":   {"a: [b]\n", 826, "1:1 " + CodeUnread, [2]int{}},
		"YAML, and as many":         {"a: [b]\n", 827, "", [2]int{827, 827}},
		"no steps":                  {block(1000, yaml), 0, "1:1 " + CodeUnread, [2]int{}},
		"fewer than none":           {block(1000, yaml), -1, "1:1 " + CodeUnread, [2]int{}},
		"large YAML":                {block(30<<10, yaml), MaxSteps, "", [2]int{30 << 10, MaxSteps / 2}},
		"mistakes":                  {block(1000, broken), MaxSteps, CodeRecovered, [2]int{50_000, MaxSteps / 2}},
		"mistakes, and few steps":   {block(1000, broken), 50_000, "1:1 " + CodeUnread, [2]int{40_000, 50_000}},
		"very many mistakes":        {block(60<<10, broken), MaxSteps, "1:1 " + CodeTooComplex, [2]int{MaxSteps - 5000, MaxSteps}},
		"as many, with many steps":  {block(60<<10, broken), 100 * MaxSteps, "1:1 " + CodeTooComplex, [2]int{MaxSteps - 5000, MaxSteps}},
		"surrogates on one line":    {"a: \"" + strings.Repeat(`\ud83d\ude00`, 5000) + "\"\n", MaxSteps, CodeRecovered, [2]int{60_000, MaxSteps}},
		"a long text":               {"a: >-\n" + strings.Repeat("  Some text that is long.\n", 2000), MaxSteps, "", [2]int{50_000, MaxSteps / 16}},
		"as many keys as fit, once": {block(60<<10, func(i int) string { return fmt.Sprintf("a%d: [\"\\u0041\\tx\n", i) }), MaxSteps, "1:1 " + CodeTooComplex, [2]int{MaxSteps / 2, MaxSteps}},
	} {
		doc, problems, took := InspectWithin("f", []byte("---\nname: a\ndescription: b\n"+c.block+"---\n"), MaxSize, c.steps)
		all := strings.Join(codes(problems), ", ")
		if isOut := strings.HasPrefix(c.code, "1:1"); isOut != (doc == nil) || isOut && all != c.code || c.code == "" && all != "" || !strings.Contains(all, c.code) {
			t.Errorf("%s: InspectWithin = %v, %s, want %q", name, doc != nil, all, c.code)
		}
		if took < c.took[0] || took > c.took[1] {
			t.Errorf("%s: it took %d steps, want %d", name, took, c.took)
		}
	}
}
