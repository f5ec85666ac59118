package grantfile

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
)

// An amount is how much of the file some grants use, or may use.
type amount struct {
	grants int
	bytes  int
}

// whole is all the room.
var whole = amount{maxGrants, maxFile - frame}

// add adds a line n times; nil stands for a line that is left out.
func (a *amount) add(line []byte, n int) {
	if line != nil {
		a.grants += n
		a.bytes += n * (len(line) + len(",\n"))
	}
}

func (a amount) within(most amount) bool { return a.grants <= most.grants && a.bytes <= most.bytes }

// divide keeps each person's lines within an equal share of the room. It leaves out
// (sets to nil) the person's grants that have been void for longest. A person over
// the share who adds nothing keeps what they have; otherwise others could not revoke
// theirs.
func divide(lines [][]byte, given, old []grants.Grant, people int) error {
	part := amount{max(1, whole.grants/people), whole.bytes / people}
	used := usedBy(given, lines)
	for _, i := range longestVoid(given) {
		if u := used[given[i].Person]; !u.within(part) {
			u.add(lines[i], -1)
			lines[i] = nil
		}
	}
	var before map[string]*amount // :: person → what they had; nil until somebody exceeds their share
	for person, u := range used {
		if u.within(part) {
			continue
		}
		if before == nil {
			was, err := linesOf(old)
			if err != nil {
				return err
			}
			before = usedBy(old, was)
		}
		if had := before[person]; had == nil || !u.within(*had) {
			return fmt.Errorf("%w: at most %d, of %d bytes, are kept of one of %d people; revoke some with: packs-mcp approvals revoke",
				ErrFull, part.grants, part.bytes, people)
		}
	}
	return nil
}

// usedBy returns how much the lines of each person's grants use.
func usedBy(given []grants.Grant, lines [][]byte) map[string]*amount {
	used := make(map[string]*amount)
	for i, g := range given {
		if used[g.Person] == nil {
			used[g.Person] = new(amount)
		}
		used[g.Person].add(lines[i], 1)
	}
	return used
}
