// Package plant writes packs for measurements: any number, with the sizes,
// depths and kinds of files of real packs, and the same bytes for the same seed.
//
// It copies no real pack, and its text has no meaning: only the shape counts.
// The shape follows 259 packs of eight public collections as far as it could be
// counted: sizes, depths, how descriptions are written, which keys frontmatter
// has and how often, and what other files there are. It differs on purpose in
// three ways. None of the real packs has tools in a file, but a quarter of these
// do, since tools are what is served. A tenth of these have tags, but only one
// in a hundred real packs did. A tenth of the real packs asked not to be used by
// models, but none of these do, so that as many are served as were requested.
package plant

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// A shape is the distribution of a measure over real packs: its percentiles 0,
// 5, 25, 50, 75, 90, 95, 99 and 100.
type shape [9]int

var shares = []float64{0, .05, .25, .5, .75, .9, .95, .99, 1}

// Measured over 259 packs of eight public collections.
var (
	documentSize    = shape{400, 1_224, 3_903, 7_602, 12_557, 18_848, 21_567, 39_738, 73_938} // bytes, of entry documents
	descriptionSize = shape{33, 58, 138, 234, 377, 533, 691, 895, 1_087}                      // characters
	otherFiles      = shape{0, 0, 1, 1, 3, 8, 11, 44, 93}                                     // beside the entry document, or below
	otherFileSize   = shape{29, 128, 645, 3_274, 6_999, 11_345, 14_937, 29_890, 144_443}      // bytes
	folders         = shape{0, 0, 0, 1, 1, 2, 3, 9, 22}                                       // below the pack's, a quarter of them nested
	above           = shape{1, 1, 2, 3, 3, 3, 3, 3, 4}                                        // folders between root and pack
)

// pick draws a value from the shape, uniformly between two percentiles.
func (s shape) pick(r *rand.Rand) int {
	at := r.Float64()
	for i := 1; i < len(shares); i++ {
		if at <= shares[i] {
			part := (at - shares[i-1]) / (shares[i] - shares[i-1])
			return s[i-1] + int(part*float64(s[i]-s[i-1]))
		}
	}
	return s[len(s)-1]
}

// words are the words of documents, descriptions and names.
var words = strings.Fields(`
account agent alert analysis api archive audit backup batch billing branch brief bucket budget build bundle
cache calendar catalog chart check citation claim client cloud cluster code column commit compare config
contract convert cost coverage customer dashboard data database debug delivery deploy design diagram diff
document draft edge email endpoint error estimate event export feature field finance fix flow form format
function gateway graph guide health hook image import incident index invoice issue journal kernel key label
language layout ledger legal library license linter list load locale log logic mail map market memory merge
message metric migrate mobile model module monitor network note notify object offer order outage package page
parser patch payment people performance pipeline plan policy price printer process product profile project
prompt proposal query queue quote rank record refactor refund release rename render report request research
resource response review risk role rollback route rule sample scan schedule schema score script search secret
section security server service session share shell sheet ship signal site skill slide snapshot source spec
sprint stack staging status store story style subject summary support survey switch table task team template
tenant test text theme ticket timeline token topic trace track train transfer translate triage tune type
update upload usage user validate vendor version video view volume vote warehouse webhook widget window work`)

// subfolders are the names of folders in packs.
var subfolders = []string{"references", "agents", "examples", "resources", "scripts", "workflows", "evals", "assets"}

// kinds are the suffixes of other files, in the proportions of twenty real
// files.
var kinds = strings.Fields(strings.Repeat(".md ", 15) + strings.Repeat(".yaml ", 3) + ".json .txt")

// A planter draws everything from one source, in one order.
type planter struct{ *rand.Rand }

// oneIn returns true in one of n cases.
func (p planter) oneIn(n int) bool { return p.IntN(n) == 0 }

func (p planter) word() string { return words[p.IntN(len(words))] }

// text returns words in lines, of about size bytes.
func (p planter) text(size int) string {
	var b strings.Builder
	b.Grow(size + 16)
	for column := 0; b.Len() < size; {
		w := p.word()
		if column += len(w) + 1; column > 90 {
			b.WriteByte('\n')
			column = len(w)
		} else if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
	}
	return b.String()
}

// line is text without line breaks.
func (p planter) line(size int) string { return strings.ReplaceAll(p.text(size), "\n", " ") }

// Write writes n packs below dir, which it creates if needed. Every fourth pack,
// beginning with the first, has tools. It returns the packs' directories in the
// order in which they were written.
func Write(dir string, seed uint64, n int) ([]string, error) {
	p := planter{rand.New(rand.NewPCG(seed, 8))}
	var made []string
	for i := range n {
		at := dir
		// Collections of some dozen packs, below one, two or three folders.
		for d := range above.pick(p.Rand) {
			at = filepath.Join(at, fmt.Sprintf("%s-%d", words[(i/40+d*37)%len(words)], i/40>>d))
		}
		name := fmt.Sprintf("%s-%s-%d", p.word(), p.word(), i)
		at = filepath.Join(at, name)
		if p.oneIn(12) {
			name = "my-" + name // unlike its folder's
		}
		if err := p.pack(at, name, i%4 == 0); err != nil {
			return nil, err
		}
		made = append(made, at)
	}
	return made, nil
}

func (p planter) pack(dir, name string, tools bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(p.document(name)), 0o644); err != nil {
		return err
	}
	places := []string{dir}
	for d := range folders.pick(p.Rand) {
		in, sub := dir, subfolders[d%len(subfolders)]
		if d >= len(subfolders) {
			sub = words[d]
		}
		if d > 0 && p.oneIn(4) {
			in = places[1+p.IntN(len(places)-1)]
		}
		sub = filepath.Join(in, sub)
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
		places = append(places, sub)
	}
	for f := range otherFiles.pick(p.Rand) {
		name := fmt.Sprintf("%s-%d%s", p.word(), f, kinds[p.IntN(len(kinds))])
		if f == 0 && p.oneIn(9) { // and two of three packs have another file
			name = "README.md"
		}
		file := filepath.Join(places[len(places)-1-f%len(places)], name)
		if name == "README.md" {
			file = filepath.Join(dir, name)
		}
		if err := os.WriteFile(file, []byte(p.text(otherFileSize.pick(p.Rand))), 0o644); err != nil {
			return err
		}
	}
	if !tools {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "tools.json"), []byte(p.tools()), 0o644)
}

// tools returns the declarations of one to four tools.
func (p planter) tools() string {
	var all []string
	for i := range 1 + p.IntN(4) {
		all = append(all, fmt.Sprintf(`{"name":"%s_%s_%d","description":%q,"inputSchema":{"type":"object","properties":{"x":{"type":"string"}}},`+
			`"command":{"program":"true","args":["--","{{x}}"]}}`, p.word(), p.word(), i, p.line(80)))
	}
	return `{"tools":[` + strings.Join(all, ",") + "]}\n"
}

// description returns YAML text as long as a real description. Each YAML style
// is about as frequent as in real packs.
func (p planter) description() string {
	text := p.line(descriptionSize.pick(p.Rand) - len(" Use when asked."))
	if p.oneIn(8) {
		text = strings.Replace(text, " ", " — ", 1)
	}
	switch at := p.IntN(100); {
	case at < 18:
		return fmt.Sprintf("%q", text+". Use when: asked.")
	case at < 32:
		return ">\n  " + strings.ReplaceAll(text, " e", "\n  e") + ".\n  Use when asked."
	}
	return text + ". Use when asked."
}

// document returns an entry document.
func (p planter) document(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: %s\ndescription: %s\n", name, p.description())
	if p.oneIn(5) {
		b.WriteString("allowed-tools: Read, Grep, Bash\n")
	}
	if p.oneIn(15) {
		b.WriteString("license: MIT\n")
	}
	if p.oneIn(20) {
		fmt.Fprintf(&b, "version: 1.%d.0\nmetadata:\n  author: %s\n  category: %s\n", p.IntN(20), p.word(), p.word())
	}
	if p.oneIn(10) {
		fmt.Fprintf(&b, "tags: [%s, %s]\n", p.word(), p.word())
	}
	b.WriteString("---\n\n# " + p.line(20) + "\n\n")
	if p.IntN(3) > 0 {
		b.WriteString("→ ") // two of three are not all ASCII
	}
	b.WriteString(p.text(max(0, documentSize.pick(p.Rand)-b.Len())))
	b.WriteString("\n")
	return b.String()
}

// Walk does what any program must do to know all packs: it walks the folders
// below dir, and reads 4 KiB of each entry document. It returns the number of
// packs. Other measurements are compared with it.
func Walk(dir string) (n int, err error) {
	head := make([]byte, 4<<10)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "SKILL.md" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n++
		if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		return nil
	})
	return n, err
}
