package packsmcp_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Paths in backticks, and links to files of the repository and their headings, must exist. A
// path begins with one of the repository's folders; the end of its path is enough for a Go
// file. A word in capitals stands for a name: agents_NAME_test.go.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	names, documents := repository(t)
	var (
		code   = regexp.MustCompile("`([A-Za-z0-9_./-]+)`")
		ours   = regexp.MustCompile(`^(cmd|docs|examples|internal|schemas|scripts|test)/`)
		stands = regexp.MustCompile(`(^|[/_])NAME([/_.]|$)`)
		link   = regexp.MustCompile(`\]\(([^():\s]+)\)`)
	)
	for _, document := range documents {
		for i, line := range strings.Split(read(t, document), "\n") {
			for _, m := range code.FindAllStringSubmatch(line, -1) {
				name := strings.TrimSuffix(m[1], "/")
				if stands.MatchString(name) || !ours.MatchString(name) && path.Ext(name) != ".go" {
					continue
				}
				if !slices.ContainsFunc(names, func(n string) bool {
					return n == name || path.Ext(name) == ".go" && strings.HasSuffix(n, "/"+name)
				}) {
					t.Errorf("%s:%d: there is no %s", document, i+1, name)
				}
			}
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target, heading, _ := strings.Cut(m[1], "#")
				file := document
				if target != "" {
					file = path.Join(path.Dir(document), target)
				}
				switch {
				case !slices.Contains(names, file):
					t.Errorf("%s:%d: there is no %s", document, i+1, file)
				case heading != "" && !slices.Contains(headings(read(t, file)), heading):
					t.Errorf("%s:%d: %s has no heading #%s", document, i+1, file, heading)
				}
			}
		}
	}
}

// A name that ARCHITECTURE.md gives after a file, in its table of what is where, must be in
// that file.
func TestNamesAreWhereTheTableSays(t *testing.T) {
	names, _ := repository(t)
	_, table, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## Where is it?\n")
	table, _, _ = strings.Cut(table, "\n## ")
	code, symbol := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`^(\w+\.)?(\w+)$`)
	checked := 0
	for line := range strings.Lines(table) {
		file := ""
		for _, m := range code.FindAllStringSubmatch(line, -1) {
			if path.Ext(m[1]) == ".go" {
				i := slices.IndexFunc(names, func(n string) bool { return n == m[1] || strings.HasSuffix(n, "/"+m[1]) })
				if file = ""; i >= 0 {
					file = names[i]
				}
			} else if s := symbol.FindStringSubmatch(m[1]); s != nil && file != "" {
				checked++
				if !regexp.MustCompile(`\b` + s[2] + `\b`).MatchString(read(t, file)) {
					t.Errorf("ARCHITECTURE.md: there is no %s in %s", m[1], file)
				}
			}
		}
	}
	if checked < 6 {
		t.Errorf("the table has %d names after files, want at least 6", checked)
	}
}

// A reader finds every document from docs/README.md, and README.md fits on a few screens.
func TestDocumentsAreFound(t *testing.T) {
	_, documents := repository(t)
	index := read(t, "docs/README.md")
	for _, document := range documents {
		if name, ok := strings.CutPrefix(document, "docs/"); ok && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not link to %s", name)
		}
	}
	if n := strings.Count(read(t, "README.md"), "\n"); n > 150 {
		t.Errorf("README.md has %d lines, want at most 150", n)
	}
}

// The table of make targets has all of them, and no others.
func TestMakeTargetsAreExplained(t *testing.T) {
	_, list, _ := strings.Cut(read(t, "Makefile"), "\n.PHONY: ")
	list, _, _ = strings.Cut(list, "\n")
	targets := strings.Fields(list)
	var explained []string
	for line := range strings.Lines(read(t, "CONTRIBUTING.md")) {
		if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| `make "), " | "); ok && strings.HasPrefix(line, "| `make ") {
			for name := range strings.SplitSeq(cell, ", ") {
				explained = append(explained, strings.TrimPrefix(strings.Trim(name, "`"), "make "))
			}
		}
	}
	slices.Sort(targets)
	slices.Sort(explained)
	if !slices.Equal(targets, explained) {
		t.Errorf("CONTRIBUTING.md explains the targets %q, and the Makefile has %q", explained, targets)
	}
}

// A schema is served at its $id by the repository itself, and every URL of a file there names
// a file that the repository has.
func TestSchemasAreWhereTheirIDsSay(t *testing.T) {
	const served = "https://raw.githubusercontent.com/packs-mcp/packs-mcp/main/"
	names, _ := repository(t)
	mention := regexp.MustCompile(regexp.QuoteMeta(served) + `[A-Za-z0-9_./-]+`)
	ids := 0
	for _, name := range names {
		switch path.Ext(name) {
		case ".go", ".json", ".md", ".txtar":
		default:
			continue
		}
		text := read(t, name)
		if ok, _ := path.Match("schemas/*.json", name); ok {
			ids++
			if !strings.Contains(text, `"$id": "`+served+name+`"`) {
				t.Errorf("the $id of %s is not %s", name, served+name)
			}
		}
		for _, url := range mention.FindAllString(text, -1) {
			if file := strings.TrimPrefix(url, served); !slices.Contains(names, file) {
				t.Errorf("%s names %s, and there is no %s", name, url, file)
			}
		}
	}
	if ids == 0 {
		t.Error("there are no schemas")
	}
}

// repository returns the files and folders, and those documents that describe the present:
// the changelog describes the past.
func repository(t *testing.T) (names, documents []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		names = append(names, name)
		if dir, _, below := strings.Cut(name, "/"); path.Ext(name) == ".md" && (!below || dir == "docs") && name != "CHANGELOG.md" {
			documents = append(documents, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, documents
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// headings returns the anchors of a document's headings.
func headings(text string) (all []string) {
	drop := regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}
