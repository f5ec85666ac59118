// Package plant writes packs to measure with: as many as are asked for, with
// the sizes, the depths and the kinds of files of real ones, and the same bytes
// for the same seed.
//
// It copies no real pack, and what it writes says nothing: the shape is what
// counts.
package plant

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// A shape is how some measure is spread over real packs: the values below which
// 0, 5, 25, 50, 75, 90, 95, 99 and 100 of a hundred lie.
type shape [9]int

var shares = []float64{0, .05, .25, .5, .75, .9, .95, .99, 1}

// Measured over 259 packs of eight public collections.
var (
	documentSize    = shape{400, 1_224, 3_903, 7_602, 12_557, 18_848, 21_567, 39_738, 73_938} // bytes, of entry documents
	descriptionSize = shape{33, 58, 138, 234, 377, 533, 691, 895, 1_087}                      // characters
	otherFiles      = shape{0, 0, 1, 1, 3, 8, 11, 44, 93}                                     // beside the entry document, or below
	otherFileSize   = shape{29, 128, 645, 3_274, 6_999, 11_345, 14_937, 29_890, 144_443}      // bytes
	folders         = shape{0, 0, 0, 1, 1, 2, 3, 9, 22}                                       // below the pack's
	above           = shape{1, 1, 2, 3, 3, 3, 3, 3, 4}                                        // folders between root and pack
)

// pick draws a value of the shape: even between two of its marks.
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

// words are what documents, descriptions and names are made of.
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

// subfolders are where packs keep what belongs to them.
var subfolders = []string{"references", "agents", "examples", "resources", "scripts", "workflows", "evals", "assets"}

func text(r *rand.Rand, size int) string {
	var b strings.Builder
	b.Grow(size + 16)
	for column := 0; b.Len() < size; {
		w := words[r.IntN(len(words))]
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
func line(r *rand.Rand, size int) string { return strings.ReplaceAll(text(r, size), "\n", " ") }

// Write writes n packs below dir, which is made when it is not there. A quarter
// of them have tools. The directories of the packs are returned, in the order in
// which they were written.
func Write(dir string, seed uint64, n int) ([]string, error) {
	r := rand.New(rand.NewPCG(seed, 8))
	var made []string
	for i := range n {
		at := dir
		// Collections of some dozen packs, below one, two or three folders.
		for d := range above.pick(r) {
			at = filepath.Join(at, fmt.Sprintf("%s-%d", words[(i/40+d*37)%len(words)], i/40>>d))
		}
		name := fmt.Sprintf("%s-%s-%d", words[r.IntN(len(words))], words[r.IntN(len(words))], i)
		at = filepath.Join(at, name)
		if err := pack(r, at, name, i); err != nil {
			return nil, err
		}
		made = append(made, at)
	}
	return made, nil
}

func pack(r *rand.Rand, dir, name string, i int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(document(r, name)), 0o644); err != nil {
		return err
	}
	places := []string{dir}
	for d := range folders.pick(r) {
		sub := filepath.Join(dir, subfolders[d%len(subfolders)])
		if d >= len(subfolders) {
			sub = filepath.Join(sub, words[d])
		}
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
		places = append(places, sub)
	}
	for f := range otherFiles.pick(r) {
		file := filepath.Join(places[len(places)-1-f%len(places)], fmt.Sprintf("%s-%d.md", words[r.IntN(len(words))], f))
		if err := os.WriteFile(file, []byte(text(r, otherFileSize.pick(r))), 0o644); err != nil {
			return err
		}
	}
	if i%4 != 0 {
		return nil
	}
	tool := fmt.Sprintf(`{"tools":[{"name":"%s_%s","description":%q,"inputSchema":{"type":"object","properties":{"x":{"type":"string"}}},"command":{"program":"true","args":["--","{{x}}"]}}]}`,
		words[r.IntN(len(words))], words[r.IntN(len(words))], line(r, 80))
	return os.WriteFile(filepath.Join(dir, "tools.json"), []byte(tool), 0o644)
}

// document is an entry document. Beside name and description, a fifth of them
// list tools, and a tenth have more keys.
func document(r *rand.Rand, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: %s\n", name)
	description := line(r, descriptionSize.pick(r))
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "description: \"%s. Use when: somebody asks.\"\n", description)
	} else {
		fmt.Fprintf(&b, "description: %s. Use it when somebody asks.\n", description)
	}
	if r.IntN(5) == 0 {
		b.WriteString("allowed-tools: Read, Grep, Bash\n")
	}
	if r.IntN(10) == 0 {
		fmt.Fprintf(&b, "license: MIT\nversion: 1.%d.0\nmetadata:\n  author: %s\n  category: %s\ntags: [%s, %s]\n",
			r.IntN(20), words[r.IntN(len(words))], words[r.IntN(len(words))], words[r.IntN(len(words))], words[r.IntN(len(words))])
	}
	b.WriteString("---\n\n# " + line(r, 20) + "\n\n")
	b.WriteString(text(r, max(0, documentSize.pick(r)-b.Len())))
	b.WriteString("\n")
	return b.String()
}
