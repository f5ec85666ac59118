package lint

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/cases"
	"github.com/packs-mcp/packs-mcp/internal/packs/convert"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sourceCodes returns every code in the repository's packages: the constants named
// Code…, and literals for Code in diagnostics.
func sourceCodes(t *testing.T) map[string]token.Position {
	t.Helper()
	found := map[string]token.Position{}
	fset := token.NewFileSet()
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			code, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[code] = fset.Position(lit.Pos())
		}
	}
	for _, root := range []string{"../../packs", "../../strictjson", "../../../cmd"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for i, id := range n.Names {
						if strings.HasPrefix(id.Name, "Code") && i < len(n.Values) {
							add(n.Values[i])
						}
					}
				case *ast.KeyValueExpr:
					if id, ok := n.Key.(*ast.Ident); ok && id.Name == "Code" {
						add(n.Value)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 50 {
		t.Fatalf("only %d codes found", len(found))
	}
	return found
}

// TestEveryCodeIsDocumented compares docs/reference/diagnostics.md with the source: each
// code has its own section with an example and a cure, and no section is about a removed
// code.
func TestEveryCodeIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/diagnostics.md")
	if err != nil {
		t.Fatal(err)
	}
	inSource := sourceCodes(t)
	documented := map[string]bool{}
	for section := range strings.SplitSeq(string(text), "\n### `") {
		code, body, ok := strings.Cut(section, "`\n")
		if !ok || strings.Contains(code, "\n") {
			continue
		}
		if documented[code] {
			t.Errorf("docs/reference/diagnostics.md has two sections about %q", code)
		}
		documented[code] = true
		if _, ok := inSource[code]; !ok {
			t.Errorf("docs/reference/diagnostics.md has a section about %q, which no package reports", code)
		}
		for _, part := range []string{"```", "**Cure.**"} {
			if !strings.Contains(body, part) {
				t.Errorf("docs/reference/diagnostics.md: the section about %q has no %s", code, part)
			}
		}
	}
	for code, at := range inSource {
		if !documented[code] {
			t.Errorf("%s: docs/reference/diagnostics.md has no section about %q", at, code)
		}
	}
}

// TestEveryCodeHasAFixture compares testdata/codes with the source, and each fixture
// with its name: testdata/codes/CODE.txtar must cause CODE and no other diagnostic.
// "profile: P", "strict: true" and "path: P" in the comment set how it is checked.
func TestEveryCodeHasAFixture(t *testing.T) {
	done := map[string]bool{}
	files, err := filepath.Glob("testdata/codes/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		// "tools-shape.2.txtar" is a second case for the same code.
		code, _, _ := strings.Cut(filepath.Base(file), ".")
		done[code] = true
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			opts, path := directives(t, a)
			dir := writeTree(t, a.Files)
			report := check(t, filepath.Join(dir, path), opts)
			if got := codes(report); !slices.Equal(got, []string{code}) {
				t.Errorf("Check(%s) = %v, want only %s: %v", file, got, code, report.Packs)
			}
			// The same without its mistake is what the text of the hint is
			// for; a mistake must not be found where there is none.
			if strings.HasPrefix(string(a.Comment), "#") {
				return
			}
			t.Errorf("%s: the comment does not say what is wrong", file)
		})
	}
	for code, fixture := range programs {
		done[code] = true
		t.Run(code, func(t *testing.T) {
			var got []string
			for _, d := range fixture(t) {
				got = append(got, d.Code)
			}
			if slices.Sort(got); !slices.Equal(slices.Compact(got), []string{code}) {
				t.Errorf("found %v, want only %s", got, code)
			}
		})
	}
	for code, at := range sourceCodes(t) {
		if !done[code] && elsewhere[code] == "" {
			t.Errorf("%s: no fixture for %q", at, code)
		}
		if done[code] && elsewhere[code] != "" {
			t.Errorf("%q has a fixture, and is said to be tested elsewhere", code)
		}
	}
	for code := range done {
		if _, ok := sourceCodes(t)[code]; !ok {
			t.Errorf("a fixture for %q, which no package reports", code)
		}
	}
}

// directives reads the comment of a fixture.
func directives(t *testing.T, a *txtar.Archive) (opts Options, path string) {
	t.Helper()
	path = "p"
	for line := range strings.Lines(string(a.Comment)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "profile":
			p, err := ParseProfile(value)
			if err != nil {
				t.Fatal(err)
			}
			opts.Profile = p
		case "strict":
			opts.Strict = value == "true"
		case "path":
			path = value
		}
	}
	return opts, path
}

// elsewhere lists codes that no file alone can cause, with the tests for them.
var elsewhere = map[string]string{ // never modified
	cases.CodeFile: "package cases: what cannot be read may be another program's",
}

// aTool is a tools.json with a tool that runs a script of the pack.
const aTool = `[{"name": "t", "description": "d", "inputSchema": {"type": "object"}, "command": ["./run.sh"]}]`

// withScript returns the diagnostics for a pack with this script.
func withScript(t *testing.T, mode fs.FileMode, script string, installed func(string) bool) []diag.Diagnostic {
	t.Helper()
	dir := writeTree(t, []txtar.File{
		{Name: "p/SKILL.md", Data: []byte(validPack)}, {Name: "p/tools.json", Data: []byte(aTool)}, {Name: "p/run.sh", Data: []byte(script)},
	})
	if err := os.Chmod(filepath.Join(dir, "p", "run.sh"), mode); err != nil {
		t.Fatal(err)
	}
	return check(t, filepath.Join(dir, "p"), Options{Installed: installed}).Packs[0].Problems
}

const validPack = "---\nname: p\ndescription: d\n---\nbody\n"

// scanProblems returns the diagnostics of a scan of some roots.
func scanProblems(t *testing.T, opts packs.Options) []diag.Diagnostic {
	t.Helper()
	c, err := packs.Scan(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	problems := slices.Clone(c.Problems())
	for _, p := range c.All() {
		problems = append(problems, p.Problems...)
	}
	return problems
}

// programs has the fixtures for codes that need more than files: several roots, a
// configuration, attached packs, another command.
var programs = map[string]func(t *testing.T) []diag.Diagnostic{ // never modified
	CodeProgramMode: func(t *testing.T) []diag.Diagnostic {
		if runtime.GOOS == "windows" {
			t.Skip("Windows has no such permission")
		}
		return withScript(t, 0o644, "#!/bin/sh\n", nil)
	},
	CodeProgramNoInterpreter: func(t *testing.T) []diag.Diagnostic { return withScript(t, 0o755, "echo hi\n", nil) },
	CodeProgramLineEnds:      func(t *testing.T) []diag.Diagnostic { return withScript(t, 0o755, "#!/bin/sh\r\necho hi\r\n", nil) },
	CodeProgramNotHere: func(t *testing.T) []diag.Diagnostic {
		return withScript(t, 0o755, "#!/usr/bin/env python9\n", func(name string) bool { return name != "python9" })
	},
	packs.CodeRootMissing: func(t *testing.T) []diag.Diagnostic {
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: filepath.Join(t.TempDir(), "gone")}}})
	},
	packs.CodeRootUnreadable: func(t *testing.T) []diag.Diagnostic {
		circle := filepath.Join(t.TempDir(), "circle")
		if err := os.Symlink("circle", circle); err != nil {
			t.Skipf("symlinks: %v", err)
		}
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: circle}}})
	},
	packs.CodeNotDigested: func(t *testing.T) []diag.Diagnostic {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}, {Name: "p/a", Data: make([]byte, 700<<10)}, {Name: "p/b", Data: make([]byte, 700<<10)}})
		return check(t, filepath.Join(dir, "p"), Options{Limits: packs.Limits{PackSize: 1 << 20}}).Packs[0].Problems
	},
	CodeNotChecked: func(t *testing.T) []diag.Diagnostic {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}, {Name: "p/long.md", Data: make([]byte, maxDocument+1)}})
		return check(t, filepath.Join(dir, "p"), Options{}).Packs[0].Problems
	},
	packs.CodeFileDenied: func(t *testing.T) []diag.Diagnostic {
		dir := filepath.Join(t.TempDir(), "p")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: p\ndescription: d\n---\nText.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "big"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, "big"), 5<<30); err != nil {
			t.Skipf("sparse files: %v", err)
		}
		var found []diag.Diagnostic
		for _, r := range check(t, dir, Options{}).Packs {
			found = append(found, r.Problems...)
		}
		return found
	},
	packs.CodeTooManyDirs: func(t *testing.T) []diag.Diagnostic {
		if testing.Short() {
			t.Skip("short: it makes 100,000 files")
		}
		t.Parallel()
		dir := t.TempDir()
		for i := range 100_001 {
			f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(i)), os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: dir}}})
	},
	packs.CodeTooDeep: func(t *testing.T) []diag.Diagnostic {
		dir := writeTree(t, []txtar.File{{Name: strings.Repeat("d/", 17) + "SKILL.md", Data: []byte(validPack)}})
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: dir}}})
	},
	frontmatter.CodeCharset: func(t *testing.T) []diag.Diagnostic {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte("---\nname: p\ndescription: caf\xe9s\n---\n")}})
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: dir}}})
	},
	frontmatter.CodeTooComplex: func(t *testing.T) []diag.Diagnostic {
		text := "---\nname: p\ndescription: d\n" + strings.Repeat("a: [\n", 10_000) + "---\n"
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(text)}})
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: dir}}})
	},
	frontmatter.CodeUnread: func(t *testing.T) []diag.Diagnostic {
		files := []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}}
		for i := range 5 {
			text := fmt.Sprintf("---\nname: p%d\ndescription: d\n%s\n---\n", i, strings.Repeat("#", 60_000))
			files = append(files, txtar.File{Name: fmt.Sprintf("p/p%d/SKILL.md", i), Data: []byte(text)})
		}
		dir := writeTree(t, files)
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: dir}}})
	},
	packs.CodeDocMissing: func(t *testing.T) []diag.Diagnostic {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}})
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: dir, Docs: map[string][]string{"p": {"gone.md"}}}}})
	},
	packs.CodeShadowed: func(t *testing.T) []diag.Diagnostic {
		dir := writeTree(t, []txtar.File{{Name: "a/p/SKILL.md", Data: []byte(validPack)}, {Name: "b/p/SKILL.md", Data: []byte(validPack)}})
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: filepath.Join(dir, "a")}, {Dir: filepath.Join(dir, "b")}}})
	},
	packs.CodeAttachUnknown: func(t *testing.T) []diag.Diagnostic {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}})
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: dir, Attach: []string{"gone"}}}})
	},
	packs.CodeAttachedOther: func(t *testing.T) []diag.Diagnostic {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}})
		set := attach.Set{Attached: map[string]attach.Entry{"p": {Dir: filepath.Join(dir, "other")}}}
		return scanProblems(t, packs.Options{Roots: []packs.Root{{Dir: dir}}, Attached: set})
	},
	packs.CodeAttachRefused: func(t *testing.T) []diag.Diagnostic {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}, {Name: "attached.json", Data: []byte("no JSON")}})
		lib, err := packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{{Dir: filepath.Join(dir, "p")}}}, attach.Open(filepath.Join(dir, "attached.json")))
		if err != nil {
			t.Fatal(err)
		}
		return lib.Catalog(t.Context()).Problems()
	},
	tools.CodeSchemaNotRead: func(t *testing.T) []diag.Diagnostic {
		_, problems := toolsjson.Parse("tools.json", []byte(`[{"name": "a", "description": "d", "inputSchema": {"type": "text"}}]`), tools.Limits{})
		return problems
	},
	tools.CodeMore: func(t *testing.T) []diag.Diagnostic {
		_, problems := toolsjson.Parse("tools.json", []byte(`{"tools": [`+strings.Repeat(`{"name": "a b"}, `, 150)+`{"name": "a b"}]}`), tools.Limits{})
		return slices.DeleteFunc(problems, func(d diag.Diagnostic) bool { return d.Severity != diag.Info }) // which is never the only one
	},
	convert.CodeLost: func(t *testing.T) []diag.Diagnostic {
		return converted(t, `[{"name": "a", "title": "A", "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false}, "command": {"program": "p", "cwd": "project", "skill_env": true}, "output": {"merged": true}, "description": "d"}]`)
	},
	convert.CodeImpossible: func(t *testing.T) []diag.Diagnostic {
		return converted(t, `[{"name": "a", "inputSchema": {"type": "object"}, "description": "d"}]`)
	},
	convert.CodeFiles: func(t *testing.T) []diag.Diagnostic {
		return converted(t, `[{"name": "a", "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false}, "command": {"program": "./p", "cwd": "project", "skill_env": true}, "output": {"merged": true}, "description": "d"}]`)
	},
}

// converted returns the diagnostics for converting a tools.json to Markdown.
func converted(t *testing.T, text string) []diag.Diagnostic {
	t.Helper()
	s, problems := convert.Read("tools.json", []byte(text))
	if s == nil {
		t.Fatal(problems)
	}
	_, said := convert.Write(s, convert.Markdown, convert.Options{})
	return append(problems, said...)
}

// TestGolden reads testdata/*.txtar, checks the folder "p" in each, and compares the
// report with want.txt.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want.txt" })
			if at < 0 {
				a.Files = append(a.Files, txtar.File{Name: "want.txt"})
				at = len(a.Files) - 1
			}
			opts, path := directives(t, a)
			dir := writeTree(t, slices.Concat(a.Files[:at], a.Files[at+1:]))
			got := golden(t, dir, path, opts)
			if *update {
				a.Files[at].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.Files[at].Data), got); diff != "" {
				t.Errorf("%s: -want +got\n%s", file, diff)
			}
		})
	}
}

func golden(t *testing.T, dir, path string, opts Options) string {
	var b strings.Builder
	for _, p := range check(t, filepath.Join(dir, path), opts).Packs {
		state := "valid"
		if !p.Valid {
			state = "not valid"
		}
		fmt.Fprintf(&b, "%s: %s, %+q, %+q\n", p.Path, state, p.Name, p.Description)
		for _, d := range p.Problems {
			fmt.Fprintf(&b, "%s %s\n", d.Severity, d)
			if d.Pointer != "" {
				fmt.Fprintf(&b, "\tat %s\n", d.Pointer)
			}
			fmt.Fprintf(&b, "\thint: %s\n", d.Hint)
		}
	}
	return filepath.ToSlash(strings.ReplaceAll(b.String(), dir+string(filepath.Separator), ""))
}

func TestCheckEnds(t *testing.T) {
	dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, dir, Options{}); !errors.Is(err, ctx.Err()) || err == nil {
		t.Errorf("Check(%q) after the end = %v, want %v", dir, err, ctx.Err())
	}
}
