package frontmatter

import "errors"

// MaxSteps is how many steps reading one block may take. Blocks with a key and a text
// on each line take none. Others go through a YAML parser, several times if they need
// recovery. Its time depends on the punctuation in the text more than on its length,
// and so do the steps. A step takes about 20 ns, even for a block made to be slow.
// Blocks that people write take one or two thousand steps.
const MaxSteps = 3 << 20

const (
	stepsOfMark  = 32  // to make and copy a token and a node
	stepsOfParse = 512 // to parse an empty text
)

var errSpent = errors.New("it takes too many steps")

// stepsToParse returns how many steps a YAML parser takes for lines.
func stepsToParse(lines []line) int {
	n := stepsOfParse
	for _, l := range lines {
		marks := 1 // the end of the text
		for i := range len(l.text) {
			switch l.text[i] {
			case ',', '[', ']', '{', '}', ':', '?', '-', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '\\', '\t':
				marks++
			}
		}
		n += len(l.text) + marks*stepsOfMark
	}
	return n
}

// stepsToMend returns how many steps one search for mistakes in lines takes.
func stepsToMend(lines []line) int {
	n := 0
	for _, l := range lines {
		n += len(l.text) + stepsOfMark
	}
	return n
}

// spend uses up n steps and reports whether that many were left. If not, none are left
// afterwards.
func (p *parser) spend(n int) bool {
	if p.spent = p.spent || n > p.steps-p.took; p.spent {
		return false
	}
	p.took += n
	return true
}
