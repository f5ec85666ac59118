package lint

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
)

// A recorded is one case from the reference validator's own tests, with its verdict.
type recorded struct {
	Test  string
	Fn    string
	Input struct {
		Content string
		DirName string `json:"dir_name"`
		Files   map[string]string
		Exists  *bool
		IsFile  bool `json:"is_file"`
	}
	Result json.RawMessage
	Raises string
	Errors []string
	Valid  bool
}

// TestReferenceCases compares the profile agent-skills with the reference validator's
// recorded cases: verdicts and properties must be the same. The cases for to_prompt
// are tested with the command that corresponds to it.
func TestReferenceCases(t *testing.T) {
	data, err := os.ReadFile(shared(t, "data/skills-ref-cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []recorded }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Cases) != 40 {
		t.Errorf("%d recorded cases, want 40", len(all.Cases))
	}
	prompts := 0
	for _, c := range all.Cases {
		if c.Fn == "to_prompt" {
			prompts++
			continue
		}
		t.Run(c.Test, func(t *testing.T) { c.run(t) })
	}
	if prompts != 4 {
		t.Errorf("%d cases of to_prompt, want 4", prompts)
	}
}

func (c recorded) run(t *testing.T) {
	dir := filepath.Join(t.TempDir(), c.Input.DirName)
	switch {
	case c.Fn == "parse_frontmatter":
		dir = filepath.Join(dir, "my-skill")
		writeFile(t, dir, "SKILL.md", []byte(c.Input.Content))
	case c.Input.Exists != nil && !*c.Input.Exists:
	case c.Input.IsFile:
		writeFile(t, filepath.Dir(dir), c.Input.DirName, []byte(c.Input.Content))
	default:
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range c.Input.Files {
			if c.Fn == "find_skill_md" {
				text = "---\nname: my-skill\ndescription: " + text + "\n---\n"
			}
			writeFile(t, dir, name, []byte(text))
		}
	}
	report := check(t, dir, Options{Profile: AgentSkills})
	switch c.Fn {
	case "validate":
		if got := report.Valid(); got != c.Valid {
			t.Errorf("Check(%q) = %v %v, want %v %v", c.Input.DirName, got, report.Packs, c.Valid, c.Errors)
		}
		if want := max(1, len(c.Errors)); !c.Valid && len(report.Packs[0].Problems) != want {
			t.Errorf("Check(%q) = %v, want as many problems as %v", c.Input.DirName, report.Packs, c.Errors)
		}
	case "find_skill_md":
		var want string
		if string(c.Result) != "null" {
			if err := json.Unmarshal(c.Result, &want); err != nil {
				t.Fatal(err)
			}
		}
		// The descriptions say which file was read.
		wanted := map[string]string{"SKILL.md": "uppercase", "skill.md": "lowercase"}[want]
		if _, both := c.Input.Files["skill.md"]; both && len(c.Input.Files) == 2 && caseless(t, dir) {
			t.Skip("a file system on which SKILL.md and skill.md are one file")
		}
		if got := report.Packs[0].Description; got != wanted {
			t.Errorf("Check(%q) read %q, want %q", c.Input.DirName, got, wanted)
		}
	default: // parse_frontmatter, read_properties
		if c.Raises != "" {
			if report.Valid() {
				t.Errorf("Check(%q) is valid, want %s", c.Input.DirName, c.Raises)
			}
			return
		}
		if !report.Valid() {
			t.Errorf("Check(%q) = %v, want no problems", c.Input.DirName, report.Packs)
		}
		var want map[string]any
		if err := json.Unmarshal(c.Result, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.properties(t, dir)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.Test, diff)
		}
	}
}

// properties reads what the reference reads.
func (c recorded) properties(t *testing.T, dir string) map[string]any {
	var file string
	for _, name := range []string{"SKILL.md", "skill.md"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			file = filepath.Join(dir, name)
			break
		}
	}
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, problems := frontmatter.Parse("SKILL.md", src)
	if doc == nil {
		t.Fatalf("frontmatter.Parse(%q) = %v", src, problems)
	}
	got := map[string]any{"name": doc.Name, "description": doc.Description}
	if c.Fn == "parse_frontmatter" {
		return map[string]any{"metadata": got, "body": strings.TrimSpace(string(src[doc.BodyOffset:]))}
	}
	for key, value := range map[string]string{"license": doc.License, "compatibility": doc.Compatibility, "allowed-tools": doc.AllowedTools} {
		if value != "" {
			got[key] = value
		}
	}
	node := doc.Node()
	for i := 0; i+1 < len(node.Content); i += 2 {
		if v := node.Content[i+1]; node.Content[i].Value == "metadata" && v.Kind == yaml.MappingNode {
			metadata := map[string]any{}
			for j := 0; j+1 < len(v.Content); j += 2 {
				metadata[v.Content[j].Value] = v.Content[j+1].Value
			}
			got["metadata"] = metadata
		}
	}
	return got
}

func caseless(t *testing.T, dir string) bool {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(names) < 2
}

// TestReferenceVerdicts compares the profile agent-skills with the reference
// validator's verdicts on real skills.
func TestReferenceVerdicts(t *testing.T) {
	data, err := os.ReadFile(shared(t, "corpora/verdicts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Files []struct {
			Path      string
			Reference struct {
				Valid  bool
				Errors []string
			} `json:"reference_validator"`
			Expected *struct{ Name, Description string }
		}
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	root := extract(t, shared(t, "corpora/packs.tar.gz"))
	c := New(Options{Profile: AgentSkills})
	// Check the folder as a whole, as a person would. Check packs separately if they are
	// hidden or too deep for a scan.
	everything := New(Options{})
	whole, err := everything.Check(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	byDir := map[string]Result{}
	for _, p := range whole.Packs {
		byDir[p.Path] = p
	}
	agreed := 0
	for _, f := range recorded.Files {
		file := filepath.Join(root, filepath.FromSlash(f.Path))
		report, err := c.Check(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Packs) != 1 || report.Valid() != f.Reference.Valid {
			t.Errorf("Check(%q) = %v, want %v %v", f.Path, report.Packs, f.Reference.Valid, f.Reference.Errors)
			continue
		}
		agreed++
		if f.Expected == nil {
			continue
		}
		p, ok := byDir[filepath.Dir(file)]
		if !ok {
			if report, err = everything.Check(t.Context(), file); err != nil {
				t.Fatal(err)
			}
			p = report.Packs[0]
		}
		if !p.Valid || p.Name != f.Expected.Name || p.Description != f.Expected.Description {
			t.Errorf("Check(%q) = %q, %q, want %q, %q", f.Path, p.Name, p.Description, f.Expected.Name, f.Expected.Description)
		}
	}
	t.Logf("%d of %d verdicts are the reference's", agreed, len(recorded.Files))
}

// BenchmarkCorpus checks every real pack in one run, as packs-mcp validate
// does.
func BenchmarkCorpus(b *testing.B) {
	archive := "../../../../shared/corpora/packs.tar.gz"
	if _, err := os.Stat(archive); err != nil {
		b.Skip("corpora: corpora/packs.tar.gz is not there")
	}
	root := extract(b, archive)
	checked := 0
	for b.Loop() {
		report, err := Check(b.Context(), root, Options{})
		if err != nil {
			b.Fatal(err)
		}
		checked = len(report.Packs)
	}
	b.ReportMetric(float64(checked), "packs")
}
