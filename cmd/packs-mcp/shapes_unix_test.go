//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// A shape is a folder of a generated tree, and how it is expected to be read.
type shape struct {
	dir   string            // relative to the root, with slashes
	files map[string]string // by name
	// want is "pack" for a pack that can be attached, "none" for a folder that
	// is not a pack, or else the code of the error that keeps it from being
	// attached.
	want string
	// warns is a further code that the pack has, if any.
	warns string
}

// packInList is a pack in what "list --json" and "validate --json" print.
type packInList struct {
	PackID            string `json:"pack_id"`
	Name, Description string
	Path              string
	Valid             bool
	Attached          bool
	Problems          []diag.Diagnostic
	AllowedTools      string `json:"allowed_tools"`
}

// TestShapes reads a generated tree of every shape that real collections have:
// depths, names of folders, entry documents at each place, frontmatter with each
// of the usual faults, and documents that are slow to read. list, validate and a
// server must report each as the shape says.
func TestShapes(t *testing.T) {
	shapes := slices.Concat(depths(), folderNames(), entryDocuments(), frontmatters())
	dir, env := home(t)
	root := filepath.Join(dir, "packs")
	for _, s := range shapes {
		for name, data := range s.files {
			file := filepath.Join(root, filepath.FromSlash(s.dir), filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	program := func(args ...string) (stdout, stderr []byte, status int) {
		t.Helper()
		cmd := exec.Command("packs-mcp", args...)
		var out, errs bytes.Buffer
		cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errs
		_ = cmd.Run()
		return out.Bytes(), errs.Bytes(), cmd.ProcessState.ExitCode()
	}

	var listed struct {
		Packs    []packInList
		Problems []diag.Diagnostic
	}
	out, stderr, status := program("list", "--all", "--json", "--packs", root)
	if err := json.Unmarshal(out, &listed); err != nil || status != 0 {
		t.Fatalf("list: status %d, %v: %s", status, err, stderr)
	}
	found := make(map[string]packInList)
	ids := make(map[string]string)
	for _, p := range listed.Packs {
		rel, err := filepath.Rel(root, p.Path)
		if err != nil {
			t.Fatal(err)
		}
		rel = filepath.ToSlash(rel)
		found[rel] = p
		if other, ok := ids[p.PackID]; ok {
			t.Errorf("the packs in %s and %s both have the id %q", other, rel, p.PackID)
		}
		ids[p.PackID] = rel
		if strangeID.MatchString(p.PackID) {
			t.Errorf("the pack in %s has the id %q, want it folded", rel, p.PackID)
		}
	}
	for _, s := range shapes {
		p, isPack := found[s.dir]
		delete(found, s.dir)
		switch {
		case isPack != (s.want != "none"):
			t.Errorf("list: %s is a pack: %v, want %s", s.dir, isPack, s.want)
		case s.want == "pack" && (!p.Valid || !p.Attached):
			t.Errorf("list: %s is %+v, want a pack that is attached", s.dir, p)
		case isPack && s.want != "pack" && (p.Valid || p.Attached || !hasProblem(p.Problems, s.want, diag.Error)):
			t.Errorf("list: %s is %+v, want the error %s", s.dir, p, s.want)
		}
		if s.warns != "" && !hasProblem(p.Problems, s.warns, "") {
			t.Errorf("list: %s is %+v, want %s", s.dir, p, s.warns)
		}
		if strings.Contains(p.Description, "|") {
			t.Errorf("list: %s has the description %q, which has YAML in it", s.dir, p.Description)
		}
		for _, d := range p.Problems {
			if d.Severity == diag.Error && (d.Hint == "" || d.File == "") {
				t.Errorf("list: %s: %+v, want a file and a hint", s.dir, d)
			}
		}
	}
	for dir, p := range found {
		t.Errorf("list: %s is a pack that nobody wanted: %+v", dir, p)
	}
	var left []diag.Diagnostic
	for _, d := range listed.Problems {
		if d.Code == "root-too-deep" {
			left = append(left, d)
		}
	}
	if len(left) != 1 || !strings.HasPrefix(left[0].File, filepath.Join(root, "deep")) {
		t.Errorf("list: %+v, want what lies too deep once, with its path", listed.Problems)
	}

	// validate reports the same.
	out, _, status = program("validate", "--json", root)
	var validated struct{ Packs []packInList }
	if err := json.Unmarshal(out, &validated); err != nil || status != 1 {
		t.Fatalf("validate: status %d, %v, want 1 and JSON", status, err)
	}
	valid := make(map[string]bool)
	for _, p := range validated.Packs {
		rel, err := filepath.Rel(root, p.Path)
		if err != nil {
			t.Fatal(err)
		}
		valid[filepath.ToSlash(rel)] = p.Valid
	}
	for _, s := range shapes {
		isValid, isPack := valid[s.dir]
		if isPack != (s.want != "none") || isValid != (s.want == "pack") {
			t.Errorf("validate: %s is a pack: %v, valid: %v, want %s", s.dir, isPack, isValid, s.want)
		}
	}
	if n := bytes.Count(out, []byte(`"root-too-deep"`)); n != 1 {
		t.Errorf("validate said %d times what lies too deep, want once", n)
	}

	// A server has them all, and logs once what it left out.
	cmd := exec.Command("packs-mcp", "serve", "--packs", root)
	var errs bytes.Buffer
	cmd.Env, cmd.Stderr = env, &errs
	cmd.Stdin = strings.NewReader(initialize + "\n" + `{"jsonrpc":"2.0","id":2,"method":"resources/list"}` + "\n")
	if out, err := cmd.Output(); err != nil || !bytes.Contains(out, []byte("skill://")) {
		t.Errorf("serve: %v, %s\n%s", err, out, errs.String())
	}
	if n := strings.Count(errs.String(), "root-too-deep"); n != 1 {
		t.Errorf("serve said %d times what lies too deep, want once:\n%s", n, errs.String())
	}
}

// strangeID matches ids that are not folded: with capitals, spaces or control
// characters, with the two underscores that stand between a pack and its tools, or
// with an empty segment.
var strangeID = regexp.MustCompile(`[\p{Lu}\s\p{C}]|__|//|^/|/$|(^|/)\.`)

// hasProblem reports whether one of the problems has the code and, unless it is
// empty, the severity.
func hasProblem(problems []diag.Diagnostic, code string, severity diag.Severity) bool {
	return slices.ContainsFunc(problems, func(d diag.Diagnostic) bool {
		return d.Code == code && (severity == "" || d.Severity == severity)
	})
}

func shapeDocument(name string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: About %[1]s.\n---\nText.\n", name)
}

// depths returns a pack at each depth, up to one folder below the bound.
func depths() []shape {
	var all []shape
	at := "deep"
	for depth := 1; depth <= 17; depth++ {
		want := "pack"
		if depth > 16 {
			want = "none"
		}
		all = append(all, shape{dir: at, files: map[string]string{"SKILL.md": shapeDocument(fmt.Sprintf("depth-%d", depth))}, want: want})
		at += fmt.Sprintf("/%d", depth)
	}
	return all
}

// folderNames returns packs below, and in, folders whose names are not ids. A
// name in the frontmatter is served in a valid form; the folder's name never
// keeps a pack from being served.
func folderNames() []shape {
	var all []shape
	for i, name := range []string{
		"a__b", "a___b", "__", "Upper", "With Spaces", "dots.and.more", "capability_packs_list", "capability-packs-read-file", "workspace",
		"mcp__server__tool", "CON", "Ünïcode", "日本", "-dash-", "percent%20", "emoji 🎉", "'quoted'", "semi;colon", "$(id)",
	} {
		own := fmt.Sprintf("n-%d", i)
		all = append(all,
			shape{dir: "names/" + name + "/below", files: map[string]string{"SKILL.md": shapeDocument(own)}, want: "pack"},
			shape{dir: "names/" + name + "/more/" + name + "/below", files: map[string]string{"SKILL.md": shapeDocument(own)}, want: "pack"},
			shape{dir: "own/" + name, files: map[string]string{"SKILL.md": shapeDocument("o-" + own)}, want: "pack"},
		)
	}
	return all
}

const toolFile = `{"name": "t", "description": "d", "command": {"program": "true", "args": []}}`

const markdownTool = "### t\n\nDoes it.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\ntrue\n```\n"

// entryDocuments returns each kind of entry document in direct children of the root
// and deeper, alone and with tools, and in the folders of a plugin.
func entryDocuments() []shape {
	var all []shape
	add := func(dir, want string, files map[string]string) {
		all = append(all, shape{dir: dir, files: files, want: want})
	}
	for _, place := range []struct {
		at     string
		anyDoc string // the result for a folder with some other document
	}{{"", "pack"}, {"entry/deeper/", "none"}} {
		prefix := "e" + fmt.Sprint(len(place.at)) + "-"
		doc := func(kind string) string { return shapeDocument(prefix + kind) }
		add(place.at+prefix+"skill", "pack", map[string]string{"SKILL.md": doc("skill"), "A.md": doc("no"), "README.md": doc("no")})
		add(place.at+prefix+"case", "pack", map[string]string{"skill.MD": doc("case")})
		add(place.at+prefix+"readme", "pack", map[string]string{"README.md": doc("readme"), "A.md": doc("no")})
		add(place.at+prefix+"plain-readme", "none", map[string]string{"README.md": "# Plain\n"})
		add(place.at+prefix+"any", place.anyDoc, map[string]string{"notes.md": doc("any"), "z.md": doc("no")})
		add(place.at+prefix+"no-frontmatter", "none", map[string]string{"notes.md": "# Plain\n"})
		add(place.at+prefix+"tools-json", "pack", map[string]string{"notes.md": doc("tools-json"), "tools.json": "[" + toolFile + "]"})
		add(place.at+prefix+"tool-pack", "pack", map[string]string{"notes.md": doc("tool-pack"), "tools/t.tool.json": toolFile})
		add(place.at+prefix+"markdown", "pack", map[string]string{"notes.md": doc("markdown") + "\n" + markdownTool})
	}
	add("plugin", "none", map[string]string{".claude-plugin/plugin.json": "{}"})
	add("plugin/skills/real", "pack", map[string]string{"SKILL.md": shapeDocument("real")})
	for _, of := range []string{"agents", "commands", "output-styles", "hooks"} {
		add("plugin/"+of, "none", map[string]string{"a.md": shapeDocument("no"), "README.md": shapeDocument("no")})
		add("plugin/"+of+"/deep", "none", map[string]string{"a.md": shapeDocument("no"), "tools.json": "[" + toolFile + "]"})
		add("plain/"+of, "pack", map[string]string{"a.md": shapeDocument("plain-" + of), "tools.json": "[" + toolFile + "]"})
	}
	return all
}

// frontmatters returns a document with each of the usual faults, and some that
// are slow to read.
func frontmatters() []shape {
	var all []shape
	for name, s := range map[string]struct{ src, want, warns string }{
		"no-name":        {"---\ndescription: d\n---\n", "name-missing", ""},
		"no-description": {"---\nname: no-description\n---\n", "description-missing", ""},
		"empty":          {"", "frontmatter-missing", ""},
		"title":          {"---\nname: title\ndescription: d\n---# Title\n", "pack", ""},
		"equal-keys":     {"---\nname: equal-keys\ndescription: |\n  First.\ndescription: second\n---\n", "pack", "key-duplicate"},
		"exclamation":    {"!---\nname: x\ndescription: d\n---\n", "frontmatter-missing", ""},
		"hash":           {"# ---\nname: x\ndescription: d\n---\n", "frontmatter-missing", ""},
		"fence":          {"```yaml\n---\nname: x\ndescription: d\n---\n```\n", "frontmatter-missing", ""},
		"fence-inside":   {"---\n```yaml\nname: fence-inside\ndescription: d\n```\n---\n", "pack", "yaml-recovered"},
		"colon":          {"---\nname: colon\ndescription: Use it: often\n---\n", "pack", "yaml-recovered"},
		"recovered-bar":  {"---\nname: recovered-bar\ndescription: |\n  One: two\nother: a: b\n---\n", "pack", "yaml-recovered"},
		"latin-1":        {"---\nname: latin-1\ndescription: Gr\xf6\xdfe\n---\n", "pack", "document-charset"},
		"other-hosts":    {"---\nname: other-hosts\ndescription: d\nmodel: opus\ncontext: fork\nwhen_to_use: often\n---\n", "pack", ""},
		"slow":           {"---\nname: slow\ndescription: d\nx: " + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "\n---\n", "pack", ""},
	} {
		all = append(all, shape{dir: "front/" + name, files: map[string]string{"SKILL.md": s.src}, want: s.want, warns: s.warns})
	}
	return all
}
