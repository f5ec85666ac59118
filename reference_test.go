package packsmcp_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/reference that come from the code")

// The pages about errors and about the log repeat what the code says about each code, event
// and member.
func TestReferenceIsCurrent(t *testing.T) {
	for _, tc := range []struct{ page, part, want string }{
		{"docs/reference/errors.md", "codes", table("Code", "Means", constants(t, "internal/server/toolerr/errors.go", "Code"))},
		{"docs/reference/audit-log.md", "events", table("Event", "Written when", constants(t, "internal/audit/audit.go", "Event"))},
		{"docs/reference/audit-log.md", "members", table("Member", "What", members(t, "internal/audit/audit.go", "Entry"))},
		{"docs/reference/audit-log.md", "limits", table("Member of `limits`", "What", members(t, "internal/audit/audit.go", "Limits"))},
	} {
		begin, end := fmt.Sprintf("<!-- %s: written by go test . -run TestReferenceIsCurrent -update -->\n", tc.part), "<!-- end of "+tc.part+" -->"
		before, rest, ok := strings.Cut(read(t, tc.page), begin)
		got, after, ok2 := strings.Cut(rest, end)
		switch {
		case !ok || !ok2:
			t.Errorf("%s has no place for its table of %s", tc.page, tc.part)
		case *update:
			if err := os.WriteFile(tc.page, []byte(before+begin+tc.want+end+after), 0o644); err != nil {
				t.Fatal(err)
			}
		case got != tc.want:
			t.Errorf("the table of %s in %s is not what the code says; run this test with -update", tc.part, tc.page)
		}
	}
}

func table(name, what string, rows [][2]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %s | %s |\n|---|---|\n", name, what)
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r[0], strings.ReplaceAll(r[1], "|", `\|`))
	}
	b.WriteString("\n")
	return b.String()
}

// constants returns the string constants of a file whose names begin with prefix, and the
// comments beside them.
func constants(t *testing.T, file, prefix string) (rows [][2]string) {
	t.Helper()
	for _, d := range parse(t, file).Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			c := s.(*ast.ValueSpec)
			value, ok := first(c.Values).(*ast.BasicLit)
			if !ok || value.Kind != token.STRING || !strings.HasPrefix(c.Names[0].Name, prefix) {
				continue
			}
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, [2]string{text, said(t, file, text, c.Comment)})
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no constants %s…", file, prefix)
	}
	return rows
}

func first(all []ast.Expr) ast.Expr {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// members returns the JSON names of a struct's fields, and the comments beside or above them.
func members(t *testing.T, file, name string) (rows [][2]string) {
	t.Helper()
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			tag, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			member, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			comment := f.Comment
			if comment == nil {
				comment = f.Doc
			}
			rows = append(rows, [2]string{member, said(t, file, member, comment)})
		}
		return false
	})
	if len(rows) == 0 {
		t.Fatalf("%s has no struct %s", file, name)
	}
	return rows
}

// said returns a comment as one line.
func said(t *testing.T, file, of string, comment *ast.CommentGroup) string {
	t.Helper()
	text := strings.Join(strings.Fields(comment.Text()), " ")
	if text == "" {
		t.Errorf("%s says nothing of %q", file, of)
	}
	return text
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
