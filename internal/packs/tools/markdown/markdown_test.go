package markdown

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMarkdownGolden reads testdata/*.txtar: a SKILL.md, the content of its frontmatter
// (defaults.json), the calls to make, and their results. Those called spec-N test section
// N of the specification.
func TestMarkdownGolden(t *testing.T) {
	tooltest.Goldens(t, *update, "testdata/*.txtar", func(files map[string]string) (*tools.Set, []diag.Diagnostic) {
		var d Defaults
		if s := files["defaults.json"]; s != "" {
			if err := json.Unmarshal([]byte(s), &d); err != nil {
				t.Fatal(err)
			}
		}
		src := []byte(files["SKILL.md"])
		d.BodyOffset = bodyOffset(src)
		return Parse("SKILL.md", src, d, tools.Limits{})
	})
}

// bodyOffset returns where the body begins after a well-formed frontmatter.
func bodyOffset(src []byte) int {
	const line = "---\n"
	if !bytes.HasPrefix(src, []byte(line)) {
		return 0
	}
	return bytes.Index(src, []byte("\n"+line)) + 1 + len(line)
}

// Real files declare exactly what a person reads in them.
func TestMarkdownRealFiles(t *testing.T) {
	type call struct {
		args string
		want string // program and arguments, each in quotes
	}
	for file, want := range map[string]struct {
		signatures []string
		calls      map[string][]call
	}{
		"git": {
			[]string{"git_status()", "git_log(count?: integer = 10)", "git_diff(staged?: boolean, file?: string)", "git_branch(all?: boolean)", "git_stash_list()"},
			map[string][]call{
				"git_status": {{`{}`, `"git" "status" "--short" "--branch"`}},
				"git_log":    {{`{}`, `"git" "log" "--oneline" "--graph" "-n" "10"`}, {`{"count": 3}`, `"git" "log" "--oneline" "--graph" "-n" "3"`}},
				"git_diff": {
					{`{}`, `"git" "diff"`}, {`{"staged": false}`, `"git" "diff"`},
					{`{"staged": true, "file": "a b"}`, `"git" "diff" "--staged" "a b"`},
				},
				"git_branch":     {{`{}`, `"git" "branch" "-v"`}, {`{"all": true}`, `"git" "branch" "--all" "-v"`}},
				"git_stash_list": {{`{}`, `"git" "stash" "list"`}},
			},
		},
		"files": {
			[]string{
				"find_files(query: string, folder?: string)", "list_directory(path?: string, all?: boolean)",
				"read_file(path: string, lines?: integer)", "file_info(path: string)", "word_count(path: string)",
			},
			map[string][]call{
				"find_files": {
					{`{"query": "x; y"}`, `"mdfind" "-name" "x; y"`},
					{`{"query": "x", "folder": "My Files"}`, `"mdfind" "-name" "x" "-onlyin" "My Files"`},
				},
				"list_directory": {{`{}`, `"ls" "-la" "."`}, {`{"path": "/tmp", "all": true}`, `"ls" "-la" "-a" "/tmp"`}},
				"read_file":      {{`{"path": "a"}`, `"head" "-n" "9999" "a"`}, {`{"path": "a", "lines": 5}`, `"head" "-n" "5" "a"`}},
				"file_info":      {{`{"path": "$(id)"}`, `"file" "$(id)"`}},
				"word_count":     {{`{"path": "*"}`, `"wc" "*"`}},
			},
		},
		"summarize": {
			[]string{
				`summarize_url(url: string, length?: string = "medium")`, `summarize_file(path: string, length?: string = "medium")`,
				`summarize_youtube(video: string, length?: string = "medium")`, `extract_content(url: string)`,
			},
			map[string][]call{
				"summarize_url": {
					{`{"url": "https://e.org/a?b=c d"}`, `"npx" "-y" "@steipete/summarize" "https://e.org/a?b=c d" "--length" "medium"`},
					{`{"url": "u", "length": "short"}`, `"npx" "-y" "@steipete/summarize" "u" "--length" "short"`},
				},
				"summarize_file":    {{`{"path": "a.pdf"}`, `"npx" "-y" "@steipete/summarize" "a.pdf" "--length" "medium"`}},
				"summarize_youtube": {{`{"video": "v"}`, `"npx" "-y" "@steipete/summarize" "v" "--youtube" "auto" "--length" "medium"`}},
				"extract_content":   {{`{"url": "u"}`, `"npx" "-y" "@steipete/summarize" "u" "--extract"`}},
			},
		},
	} {
		t.Run(file, func(t *testing.T) {
			src := tooltest.Shared(t, "data/markdown-tools/"+file+".SKILL.md")
			set, found := Parse("SKILL.md", src, Defaults{BodyOffset: bodyOffset(src)}, tools.Limits{})
			for _, d := range found {
				if d.Severity != diag.Info {
					t.Errorf("ParseMarkdown: %v", d)
				}
			}
			if set == nil {
				t.Fatalf("ParseMarkdown = nil, %v", found)
			}
			var signatures []string
			for _, tool := range set.Tools {
				signatures = append(signatures, tool.Signature())
				if tool.Description == "" || tool.Command.Cwd != tools.CwdProject || !tool.Output.Merged || !tool.Command.SkillEnv {
					t.Errorf("%s = %s", tool.Name, tool.Definition())
				}
				if !bytes.HasPrefix(bytes.Split(src, []byte("\n"))[tool.Line-1], []byte("### "+tool.Name)) {
					t.Errorf("%s is in line %d, where it is not", tool.Name, tool.Line)
				}
				for _, c := range want.calls[tool.Name] {
					inv, err := tool.Expand(tooltest.MustCheck(t, tool, c.args), nil)
					if err != nil {
						t.Errorf("Expand(%s) of %s = %v", c.args, tool.Name, err)
						continue
					}
					if got := fmt.Sprintf("%q", append([]string{inv.Program}, inv.Args...)); got != "["+c.want+"]" {
						t.Errorf("Expand(%s) of %s = %s, want [%s]", c.args, tool.Name, got, c.want)
					}
				}
			}
			if diff := cmp.Diff(want.signatures, signatures); diff != "" {
				t.Errorf("signatures: -want +got\n%s", diff)
			}
			if file == "summarize" && (len(set.Tools[0].Examples) != 1 || !strings.HasPrefix(set.Tools[0].Examples[0], "User: summarize this webpage\n")) {
				t.Errorf("examples = %q", set.Tools[0].Examples)
			}
		})
	}
}

// Real documents have headings of all kinds, none of which declares a tool.
func TestMarkdownCorpus(t *testing.T) {
	zr, err := gzip.NewReader(bytes.NewReader(tooltest.Shared(t, "corpora/packs.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	documents, headings := 0, 0
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !strings.EqualFold(path.Ext(h.Name), ".md") {
			continue
		}
		src, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		documents++
		headings += bytes.Count(src, []byte("\n### "))
		if set, found := Parse(h.Name, src, Defaults{}, tools.Limits{}); set != nil || len(found) > 0 || MentionsCommand(src) {
			t.Errorf("ParseMarkdown(%s) = %v, %v, want no tool", h.Name, set, found)
		}
		// The same without MentionsCommand, and with a heading that it would find.
		m := newDocument(h.Name, append(slices.Clone(src), "\n\n#### Commands\n"...), Defaults{}, tools.Limits{})
		if set := m.parse(m.src); set != nil || m.Errors > 0 {
			t.Errorf("parsing %s = %v, %v, want no tool", h.Name, set, m.Found)
		}
	}
	if documents < 259 || headings < 1000 {
		t.Errorf("%d documents with %d headings of level 3, want more", documents, headings)
	}
	t.Logf("%d documents with %d headings of level 3", documents, headings)
}
