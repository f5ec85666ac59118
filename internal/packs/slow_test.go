package packs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
)

// slow has kinds of frontmatter that take long to read, in some 64 KiB.
var slow = map[string]func(i int) string{
	"escapes in quotes that end nowhere": func(i int) string { return fmt.Sprintf("a%d: \"\\u0041\\tx\n", i) },
	"mistakes, each line one":            func(int) string { return "a: b: [\n" },
	"nested brackets": func(i int) string {
		return fmt.Sprintf("a%d: %s%s\n", i, strings.Repeat("[", 60), strings.Repeat("]", 60))
	},
	"numbers":                  func(i int) string { return fmt.Sprintf("a%d: [1.5e1,1.5e1,1.5e1]\n", i) },
	"anchors":                  func(i int) string { return fmt.Sprintf("a%d: &a%d x\n", i, i) },
	"one key, again and again": func(int) string { return "a:\n" },
}

func slowDocument(line func(int) string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(line(i))
	}
	return "---\nname: slow\ndescription: d\n" + b.String() + "---\n"
}

// usualYAML is YAML as people write it. The reader of plain lines leaves it to the
// full parser.
const usualYAML = "---\nname: %s\ndescription: >-\n  Use this skill when somebody asks for something,\n  and: otherwise not.\ntags: [one, two]\n---\n"

const usualSteps = 1_500 // the most steps that usualYAML takes

// Of a pack with very many documents that are slow to read, only some are read at
// once. It keeps no other pack from being found, and no edit of another pack waits
// for it. In the end, all are read.
func TestSlowFrontmatter(t *testing.T) {
	const documents = 50
	for name, line := range slow {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			document := slowDocument(line, 60<<10)
			dir := writeTree(t, "-- m/SKILL.md --\nPACK m\n")
			needStamps(t, dir)
			for i := range documents {
				write(t, fmt.Sprintf("%s/m/%03d/SKILL.md", dir, i), document)
			}
			write(t, dir+"/z/SKILL.md", fmt.Sprintf(usualYAML, "z"))
			l := library(t, dir, memo.Index{})
			if n := l.steps(); n > maxPackSteps+usualSteps {
				t.Errorf("%d steps were taken, want %d at most", n, maxPackSteps+usualSteps)
			}
			if n := unread(l.Catalog(t.Context())); n < documents/2 || n > documents {
				t.Errorf("%d of %d documents were not read", n, documents)
			}
			if p, _ := l.Catalog(t.Context()).Lookup("z"); p == nil || !p.Valid {
				t.Errorf("the other pack is %+v", p)
			}
			if problems := l.Catalog(t.Context()).Problems(); !slices.ContainsFunc(problems, func(d diag.Diagnostic) bool { return d.Code == frontmatter.CodeUnread && d.File == dir }) {
				t.Errorf("said is %v, want that not all was read", problems)
			}
			write(t, dir+"/z/SKILL.md", fmt.Sprintf(usualYAML, "new"))
			changed, err := l.Refresh(t.Context(), []string{filepath.Join(dir, "z")})
			if p, _ := l.Catalog(t.Context()).Lookup("new"); err != nil || !changed || p == nil || !p.Valid || l.steps() > usualSteps {
				t.Errorf("after an edit of another: %v, %v, %+v, and %d steps were taken", changed, err, p, l.steps())
			}
			before := unread(l.Catalog(t.Context()))
			must(t, l.Rescan(t.Context()))
			if n := l.steps(); n > maxPackSteps || unread(l.Catalog(t.Context())) >= before {
				t.Errorf("after a look at everything, %d of %d documents were not read, and %d steps were taken", unread(l.Catalog(t.Context())), before, n)
			}
		})
	}
}

func unread(c *Catalog) int {
	n := 0
	for _, p := range c.All() {
		if isUnread(p.Problems) {
			n++
		}
	}
	return n
}

// What there were no steps for is read by the next full scans, in this process or in
// another one with its index, until nothing is left to read.
func TestUnreadDocumentsAreReadInTheEnd(t *testing.T) {
	const documents = 40
	steps := bounds{steps: 1 << 20, packSteps: 1 << 18}
	for name, c := range map[string]struct {
		folder string
		packs  int
	}{
		"in one pack":                 {"m/%02d/SKILL.md", documents + 1},
		"packs":                       {"n%02d/SKILL.md", documents + 1},
		"packs that have no SKILL.md": {"n%02d/README.md", documents + 1},
		"documents that are none":     {"n%02d/notes.md", 1},
		"links":                       {"l%02d/SKILL.md", documents + 1},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := writeTree(t, "-- m/SKILL.md --\nPACK m\n")
			needStamps(t, dir)
			document := slowDocument(slow["nested brackets"], 1000)
			if name == "documents that are none" {
				document = strings.Replace(document, "name:", "other:", 1)
			}
			isLink := strings.HasPrefix(c.folder, "l")
			for i := range documents {
				file := filepath.Join(dir, fmt.Sprintf(c.folder, i))
				if !isLink {
					write(t, file, document)
					continue
				}
				write(t, filepath.Join(filepath.Dir(file), "text"), document)
				if err := os.Symlink("text", file); err != nil {
					t.Skipf("symlinks: %v", err)
				}
			}
			opts := Options{
				Roots: []Root{{Dir: dir, AttachAll: true}}, Index: memo.Index{Dir: t.TempDir()}, bounds: steps,
				clock: func() time.Time { return time.Now().Add(later) },
			}
			must(t, os.Chmod(opts.Index.Dir, 0o700))
			l, err := NewLibrary(t.Context(), opts, nil)
			must(t, err)
			bound := steps.steps
			if isLink || strings.HasPrefix(c.folder, "m/") {
				bound = steps.packSteps
			}
			isUnread := func() bool {
				return slices.ContainsFunc(l.Catalog(t.Context()).Problems(), func(d diag.Diagnostic) bool { return d.Code == frontmatter.CodeUnread })
			}
			if !isUnread() {
				t.Fatalf("%d steps were taken, and everything was read at once", l.steps())
			}
			for round := 0; isUnread(); round++ {
				if n := l.steps(); n > bound || n < bound/4 {
					t.Errorf("%d steps were taken, want nearly %d", n, bound)
				}
				if isLink {
					must(t, l.Rescan(t.Context()))
					if n := l.steps(); n > bound || !isUnread() {
						t.Errorf("the next time, %d steps were taken for links", n)
					}
					return
				}
				if round == documents {
					t.Fatalf("after %d looks, not everything was read", round)
				}
				if round%2 == 0 {
					err = l.Rescan(t.Context())
				} else {
					before := len(l.Catalog(t.Context()).All()) - unread(l.Catalog(t.Context()))
					_, err := l.SaveIndex(t.Context())
					must(t, err)
					if l, err = NewLibrary(t.Context(), opts, nil); err == nil && len(l.Catalog(t.Context()).All())-unread(l.Catalog(t.Context())) < before {
						t.Error("what was read is not in the index")
					}
				}
				must(t, err)
			}
			if all := l.Catalog(t.Context()).All(); len(all) != c.packs || slices.ContainsFunc(all, func(p *Pack) bool { return !p.Valid }) {
				t.Errorf("there are %d packs, want %d, all valid", len(all), c.packs)
			}
			if err := l.Rescan(t.Context()); err != nil || l.steps() != 0 {
				t.Errorf("Rescan = %v, and took %d steps though nothing happened", err, l.steps())
			}
		})
	}
}

// A library goes on reading in steps as long as it makes progress. Links, which are
// read again each time, keep it busy once and not forever.
func TestReadOn(t *testing.T) {
	const documents = 40
	dir := writeTree(t, "-- m/SKILL.md --\nPACK m\n")
	needStamps(t, dir)
	document := slowDocument(slow["nested brackets"], 1000)
	for i := range documents {
		write(t, fmt.Sprintf("%s/n%02d/SKILL.md", dir, i), document)
	}
	opts := Options{
		Roots: []Root{{Dir: dir, AttachAll: true}}, bounds: bounds{steps: 1 << 20, packSteps: 1 << 18},
		clock: func() time.Time { return time.Now().Add(later) },
	}
	l, err := NewLibrary(t.Context(), opts, nil)
	must(t, err)
	readOn := func() (steps int) {
		t.Helper()
		for {
			before := unread(l.Catalog(t.Context()))
			changed, more, err := l.ReadOn(t.Context())
			must(t, err)
			after := unread(l.Catalog(t.Context()))
			if changed != (after < before) {
				t.Errorf("ReadOn = %v, and %d documents of %d are left", changed, after, before)
			}
			if steps++; !more || steps > documents {
				return steps
			}
		}
	}
	if n := unread(l.Catalog(t.Context())); n < documents/2 {
		t.Fatalf("only %d documents were left", n)
	}
	if n := readOn(); n < 2 || n > documents || unread(l.Catalog(t.Context())) > 0 {
		t.Errorf("after %d steps, %d documents are not read", n, unread(l.Catalog(t.Context())))
	}
	if changed, more, err := l.ReadOn(t.Context()); changed || more || err != nil {
		t.Errorf("ReadOn of everything that was read = %v, %v, %v", changed, more, err)
	}
	for i := range documents {
		write(t, fmt.Sprintf("%s/l%02d/text", dir, i), document)
		if err := os.Symlink("text", fmt.Sprintf("%s/l%02d/SKILL.md", dir, i)); err != nil {
			t.Skipf("symlinks: %v", err)
		}
	}
	must(t, l.Rescan(t.Context()))
	if n := readOn(); n > 2 {
		t.Errorf("%d steps for links, which get it no further", n)
	}
	if _, more, err := l.ReadOn(t.Context()); more || err != nil {
		t.Errorf("ReadOn once more = %v, %v", more, err)
	}
}

// A patient scan reads everything, however long it takes, except documents that
// exceed their own bound.
func TestPatient(t *testing.T) {
	dir := writeTree(t, "-- m/SKILL.md --\nPACK m\n")
	document := slowDocument(slow["nested brackets"], 1000)
	for i := range 40 {
		write(t, fmt.Sprintf("%s/m/%02d/SKILL.md", dir, i), document)
	}
	opts := Options{Roots: []Root{{Dir: dir}}, bounds: bounds{steps: 1 << 20, packSteps: 1 << 18}}
	if n := unread(scan(t, opts)); n == 0 {
		t.Fatal("nothing was left")
	}
	opts.Patient = true
	if c := scan(t, opts); unread(c) > 0 || len(c.Problems()) > 0 {
		t.Errorf("%d documents were left, and said is %v", unread(c), c.Problems())
	}
}

// Twenty thousand packs with usual YAML stay within the bound, beside one that is as
// slow as possible.
func TestUsualFrontmatterIsRead(t *testing.T) {
	_, problems, took := frontmatter.InspectWithin("f", fmt.Appendf(nil, usualYAML, "a"), frontmatter.MaxSize, maxSteps)
	if len(problems) > 0 || took == 0 || took > usualSteps {
		t.Errorf("InspectWithin = %v, and took %d steps, want %d at most", problems, took, usualSteps)
	}
	if 20_000*usualSteps > maxSteps-maxPackSteps {
		t.Errorf("%d steps are not enough for 20,000 packs", maxSteps)
	}
}
