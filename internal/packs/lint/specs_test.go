package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestEverySectionHasALine compares docs/reference/specs.md with the specifications:
// each heading has its own row, and so does each of skillkit's edge cases.
func TestEverySectionHasALine(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/reference/specs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"capability-packs.md", "skill-md-tools.md", "tool-packs.md", "skillkit.md", "unified-skills.md"} {
		t.Run(spec, func(t *testing.T) {
			text, err := os.ReadFile(shared(t, "specs/"+spec))
			if err != nil {
				t.Fatal(err)
			}
			_, part, found := strings.Cut(string(doc), "("+spec+")\n")
			if !found {
				t.Fatalf("docs/reference/specs.md has no part about %s", spec)
			}
			part, _, _ = strings.Cut(part, "\n## ")
			rows := map[string]int{} // :: section → how many rows are about it
			for _, row := range specRows(part) {
				if len(row) > 1 && row[1] != "" {
					rows[sectionKey(row[0])]++
				}
			}
			wanted := specSections(string(text))
			if len(wanted) == 0 {
				t.Errorf("%s has no sections", spec)
			}
			for _, s := range wanted {
				if n := rows[sectionKey(s)]; n != 1 {
					t.Errorf("docs/reference/specs.md has %d rows about %q of %s, want 1", n, s, spec)
				}
			}
		})
	}
}

// TestEveryRowNamesATest checks the last column of docs/reference/specs.md: each row names
// tests that exist, or says why there is nothing to test.
func TestEveryRowNamesATest(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/reference/specs.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := specRows(string(doc))
	if len(rows) < 150 {
		t.Errorf("docs/reference/specs.md has %d rows, want those of five specifications", len(rows))
	}
	for _, row := range rows {
		if err := rowProblem(os.DirFS("../../.."), row); err != nil {
			t.Errorf("docs/reference/specs.md: row %q: %v", row[0], err)
		}
	}
}

func TestRowProblem(t *testing.T) {
	tree := fstest.MapFS{
		"root_test.go":               {Data: []byte("package x\n\nfunc TestRoot(t *testing.T) {\n}\n")},
		"a/b/b_test.go":              {Data: []byte("package b\n\nfunc TestMain(m *testing.M) {\n}\n\nfunc TestOne(t *testing.T) {\n}\n\nfunc TestHelper(t *testing.T, x int) {\n}\n")},
		"a/b/more_test.go":           {Data: []byte("package b\n\nfunc TestTwo(t *testing.T) {\n}\n")},
		"a/b/testdata/in/case.txtar": {},
	}
	for _, tt := range []struct {
		here, shown string
		ok          bool
	}{
		{"as it is", "`a/b` `TestOne`", true},
		{"as it is", "`a/b` `TestOne`, `TestTwo/case`; `.` `TestRoot`", true},
		{"not applicable: of another program", "—", true},
		{"*later*", "—", true},
		{"as it is", "—", false},
		{"as it is", "", false},
		{"as it is", "a/b TestOne", false},
		{"as it is", "`a/b`", false},
		{"as it is", "`a/b` `TestGone`", false},
		{"as it is", "`a/b` `TestOne`, `TestGone`", false},
		{"as it is", "`a/b` `TestTwo/gone`", false},
		{"as it is", "`a/b` `TestHelper`", false},
		{"as it is", "`a/b` `TestMain`", false},
		{"as it is", "`a/c` `TestOne`", false},
		{"as it is", "`../b` `TestOne`", false},
		{"as it is", "`a/b` `TestTwo/../case`", false},
	} {
		if err := rowProblem(tree, []string{"Section", tt.here, tt.shown}); (err == nil) != tt.ok {
			t.Errorf("rowProblem(%q, %q) = %v, want a problem: %v", tt.here, tt.shown, err, !tt.ok)
		}
	}
	if err := rowProblem(tree, []string{"Section", "as it is"}); err == nil {
		t.Error("rowProblem of a row without a last column = nil")
	}
}

// specRows returns the cells of each row about a section, without the heads of
// the tables.
func specRows(doc string) [][]string {
	var rows [][]string
	for line := range strings.Lines(doc) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Section |") {
			continue
		}
		rows = append(rows, strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | "))
	}
	return rows
}

// rowProblem returns what is wrong with the tests that a row of docs/reference/specs.md
// names, in the source tree root. The last cell lists, for each package, its
// folder and its tests; a subtest is a file of the package's testdata.
func rowProblem(root fs.FS, row []string) error {
	if len(row) != 3 {
		return fmt.Errorf("%d cells, want a section, what is here, and the tests", len(row))
	}
	here, shown := row[1], row[2]
	if shown == "—" {
		if strings.Contains(here, "not applicable") || here == "*later*" {
			return nil
		}
		return errors.New(`it names no test, and is neither "not applicable" nor "*later*"`)
	}
	for group := range strings.SplitSeq(shown, "; ") {
		m := specTests.FindStringSubmatch(group)
		if m == nil {
			return fmt.Errorf("%q is not a package and its tests, such as `internal/server` `TestExec`", group)
		}
		source, err := testSource(root, m[1])
		if err != nil {
			return err
		}
		for name := range strings.SplitSeq(m[2], ", ") {
			name, sub, isSub := strings.Cut(strings.Trim(name, "`"), "/")
			if name == "TestMain" || !strings.Contains(source, "\nfunc "+name+"(t *testing.T) {") {
				return fmt.Errorf("package %s has no test %s", m[1], name)
			}
			if isSub && !hasGolden(root, m[1], sub) {
				return fmt.Errorf("the test data of package %s has no %s.txtar, which %s would read", m[1], sub, name)
			}
		}
	}
	return nil
}

// testSource returns the test files of a package, joined.
func testSource(root fs.FS, pkg string) (string, error) {
	files, err := fs.Glob(root, path.Join(pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("there is no package %s with tests", pkg)
	}
	var all strings.Builder
	for _, f := range files {
		src, err := fs.ReadFile(root, f)
		if err != nil {
			return "", err
		}
		all.Write(src)
	}
	return all.String(), nil
}

// hasGolden reports whether the test data of a package has an archive of that name.
func hasGolden(root fs.FS, pkg, name string) bool {
	found := false
	_ = fs.WalkDir(root, path.Join(pkg, "testdata"), func(file string, _ fs.DirEntry, err error) error {
		found = found || err == nil && path.Base(file) == name+".txtar"
		return nil
	})
	return found
}

// specSections returns the parts of a specification that need a row.
func specSections(text string) []string {
	var all []string
	fenced, cases := false, 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		if m := specHeading.FindStringSubmatch(line); m != nil {
			all = append(all, m[1])
		}
		if strings.HasPrefix(line, "- **What happens when ") {
			cases++
			all = append(all, fmt.Sprintf("Edge case %d", cases))
		}
	}
	return all
}

var (
	specHeading = regexp.MustCompile(`^#{2,4} (.*\S)`)
	specNumber  = regexp.MustCompile(`^(\d+(?:\.\d+)*)\.? |^(edge case \d+)\b`)
	specAside   = regexp.MustCompile(` \*?\([^()]*\)\*?$`)
	specTests   = regexp.MustCompile("^`([a-z0-9/_-]+|\\.)` (`Test[A-Za-z0-9_]*(?:/[A-Za-z0-9._-]+)?`(?:, `Test[A-Za-z0-9_]*(?:/[A-Za-z0-9._-]+)?`)*)$")
)

// sectionKey returns the key that a heading and its row share: the number, or the
// title without parentheses at the end.
func sectionKey(title string) string {
	title = strings.ToLower(strings.TrimSpace(title))
	if m := specNumber.FindStringSubmatch(title + " "); m != nil {
		return m[1] + m[2]
	}
	return specAside.ReplaceAllString(title, "")
}
