package packsmcp_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// serverOrder is the reading order of the files of internal/server: what clients call, the
// tools, the path of a call, chats, and what all of these use. Put a new file where most of
// what it uses comes after it.
func serverOrder() []string {
	return []string{
		"doc", "reply", "host", "front", "cards",
		"skill_tools", "listing", "front_request", "tool_exec", "tool_call", "tool_read_file", "tool_enable",
		"tool_open_docs", "tool_list", "secrets", "call",
		"clients", "chat_views", "server", "options",
	}
}

// At most a fifth of the arrows between the files of internal/server point upward in reading
// order. With -v, the test names those that do.
func TestArrowsOfServer(t *testing.T) {
	files, fset := parseFiles(t, "internal/server")
	at := make(map[string]int)
	for i, name := range serverOrder() {
		at[name] = i
		if files[name] == nil {
			t.Errorf("internal/server/%s.go is not there: take it out of serverOrder", name)
		}
	}
	for name := range files {
		if _, ok := at[name]; !ok {
			t.Errorf("internal/server/%s.go is not in serverOrder: put it where most of what it uses comes after it", name)
		}
	}
	all := arrows(files, fset)
	var up []string
	for a, names := range all {
		if at[a.to] < at[a.from] {
			up = append(up, fmt.Sprintf("%s → %s: %s", a.from, a.to, strings.Join(names, ", ")))
		}
	}
	slices.Sort(up)
	t.Logf("%d of %d arrows run upward:\n%s", len(up), len(all), strings.Join(up, "\n"))
	if 5*len(up) > len(all) {
		t.Errorf("%d of %d arrows run upward, want at most a fifth; -v names them", len(up), len(all))
	}
}

// An arrow leads from a file that uses names to the file that declares them.
type arrow struct{ from, to string }

// parseFiles returns the Go files of a folder, without tests, by name without the extension.
func parseFiles(t *testing.T, dir string) (map[string]*ast.File, *token.FileSet) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset, files := token.NewFileSet(), make(map[string]*ast.File)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[fileName(name)] = f
	}
	return files, fset
}

func fileName(name string) string { return strings.TrimSuffix(filepath.Base(name), ".go") }

// arrows returns the arrows between files of one package, with the names that cause them. It
// ignores fields, and the receivers of methods.
func arrows(files map[string]*ast.File, fset *token.FileSet) map[arrow][]string {
	var all []*ast.File
	receivers := make(map[*ast.Ident]bool)
	for _, f := range files {
		all = append(all, f)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				ast.Inspect(fn.Recv, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						receivers[id] = true
					}
					return true
				})
			}
		}
	}
	// Other packages are not loaded, so there are errors, which do not matter: what the files
	// declare themselves is known.
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := conf.Check("server", fset, all, info)

	found := make(map[arrow][]string)
	for id, obj := range info.Uses {
		fn, _ := obj.(*types.Func)
		method := fn != nil && fn.Signature().Recv() != nil
		if obj.Pkg() != pkg || receivers[id] || obj.Parent() != pkg.Scope() && !method {
			continue
		}
		a := arrow{fileName(fset.Position(id.Pos()).Filename), fileName(fset.Position(obj.Pos()).Filename)}
		if a.from != a.to && !slices.Contains(found[a], obj.Name()) {
			found[a] = append(found[a], obj.Name())
		}
	}
	for _, names := range found {
		slices.Sort(names)
	}
	return found
}

// nothing imports packages that declare nothing.
type nothing struct{}

func (nothing) Import(name string) (*types.Package, error) {
	pkg := types.NewPackage(name, path.Base(name))
	pkg.MarkComplete()
	return pkg, nil
}

func TestArrows(t *testing.T) {
	fset, files := token.NewFileSet(), make(map[string]*ast.File)
	for name, src := range map[string]string{
		"a": "package x\nimport \"other/b\"\ntype T struct{ field int }\nfunc f(t *T) { g(); t.method(); t.field++; b.C() }",
		"b": "package x\nfunc (t *T) method() {}\nfunc g() {}",
		"c": "package x\nvar _ = T{}\nfunc h() { g := 1; _ = g }",
	} {
		f, err := parser.ParseFile(fset, name+".go", src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
	}
	got, want := fmt.Sprint(arrows(files, fset)), "map[{a b}:[g method] {c a}:[T]]"
	if got != want {
		t.Errorf("arrows = %s, want %s", got, want)
	}
}
