package frontmatter

import "errors"

// MaxSteps is how many steps the reading of one block may take. Blocks that are a
// key and a text on each line take none. Others are read by a parser of YAML, some
// several times, as recovery wants it: its time goes by the marks of the text more
// than by its length, and so do the steps. A step is some 20 ns, whatever somebody
// thought of to make it slow. Blocks that people write take one or two thousand.
const MaxSteps = 3 << 20

const (
	stepsOfMark  = 32  // a token, and a node, which are made and copied
	stepsOfParse = 512 // a parser of nothing
)

var errSpent = errors.New("it takes too many steps")

// stepsToParse returns how many steps a parser of YAML takes for lines.
func stepsToParse(lines []line) int {
	n := stepsOfParse
	for _, l := range lines {
		marks := 1 // its end
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

// stepsToMend returns how many steps one look for mistakes in lines takes.
func stepsToMend(lines []line) int {
	n := 0
	for _, l := range lines {
		n += len(l.text) + stepsOfMark
	}
	return n
}

// spend takes so many steps, or reports that there are not as many left. Then
// there are none left for anything else.
func (p *parser) spend(n int) bool {
	if p.spent = p.spent || n > p.steps-p.took; p.spent {
		return false
	}
	p.took += n
	return true
}
