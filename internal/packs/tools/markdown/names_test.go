package markdown

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// For every document that declares tools, Names returns the names of the compiled tools.
func TestMarkdownNamesAreThoseOfTools(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name != "SKILL.md" {
				continue
			}
			body := bodyOffset(f.Data)
			set, _ := Parse(f.Name, f.Data, Defaults{BodyOffset: body}, tools.Limits{})
			if set == nil {
				continue
			}
			compared++
			var want []string
			for _, tool := range set.Tools {
				want = append(want, tool.Name)
			}
			if got := Names(f.Data[body:]); !slices.Equal(got, want) {
				t.Errorf("%s: names %q, want %q", file, got, want)
			}
		}
	}
	if compared < 5 {
		t.Errorf("only %d documents declare tools", compared)
	}
}

func TestMarkdownNames(t *testing.T) {
	const command = "\n#### Command\n```\ntrue\n```\n"
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"nothing":                     {"", nil},
		"no command":                  {"### one\n#### Parameters\n", nil},
		"one":                         {"### one" + command, []string{"one"}},
		"two, and one twice":          {"### one" + command + "### two" + command + "### one" + command, []string{"one", "two"}},
		"as people write them":        {"  ### `one` ##\r\n\r\n####\tCOMMAND ####\r\n### two\\_b ###" + command, []string{"one", "two_b"}},
		"no name":                     {"### Not a name" + command + "### Upper" + command, nil},
		"another section in between":  {"### one\n## Two" + command, nil},
		"a deeper heading in between": {"### one\n#### Notes\n##### More\n" + command, []string{"one"}},
		"in a fence":                  {"````md\n### one\n```\n" + command + "````\n### two" + command, []string{"two"}},
		"in a fence of tildes":        {"~~~ ``` md\n### one" + command + "~~~\n### two" + command, []string{"two"}},
		"code, and no fence":          {"``` a ` b\n### one" + command, []string{"one"}},
		"indented":                    {"    ### one" + command, nil},
		"no headings":                 {"####### one\n###one" + command + "#", nil},
	} {
		if got := Names([]byte(c.body)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
