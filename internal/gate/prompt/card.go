package prompt

import (
	"cmp"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A Card is a question as facts: what a person decides about. The client's form, the
// terminal and the page are renderings of it. Everything in it is escaped, so that it
// can be shown as text, and contains none of the characters with which renderings
// mark their own lines. It is not safe as markup.
type Card struct {
	// Title says what happens in one line: "Run tool changelog of pack git-helper?"
	Title string `json:"title"`
	// Command is what would be started, complete, as one would type it in a POSIX
	// shell; see [typed]. It is empty if nothing is started.
	Command string `json:"command,omitempty"`
	// Marks are the few things that matter, most important first.
	Marks []Mark `json:"marks,omitempty"`
	// Facts are complete, and ordered by section.
	Facts []Fact `json:"facts"`
	// Quotes are words that the pack chose.
	Quotes []Quote `json:"quotes,omitempty"`
}

// A Mark is something that matters, in a few words: "changes the project".
type Mark struct {
	Role   Role   `json:"role"` // of the facts with the details
	Text   string `json:"text"`
	Weight Weight `json:"weight"`
}

// A Fact is one thing that a person decides about.
type Fact struct {
	Role    Role    `json:"role"`
	Section Section `json:"section"`
	Label   string  `json:"label"` // what is shown beside the value: "may read"
	Value   string  `json:"value"` // one line; parts that others chose are in quotes, if they can be told apart
	Weight  Weight  `json:"weight"`
}

// A Quote is what a pack says about something, in one or more lines.
type Quote struct {
	Who  string `json:"who"` // "The pack says of this tool"
	Text string `json:"text"`
}

// A Weight is how much a fact matters.
type Weight string

// The weights.
const (
	Danger Weight = "danger" // untrusted, no sandbox, the whole network, changed, hidden text
	Notice Weight = "notice" // changes or gets what is the user's, loopback
	Plain  Weight = "plain"
)

// A Section is where a fact belongs.
type Section string

// The sections, in the order of a card's facts.
const (
	SectionChange Section = "change" // what changed since an earlier answer
	SectionCall   Section = "call"   // what was asked for, by whom, and its effects
	SectionAccess Section = "access" // what it may read, change and reach
	SectionRun    Section = "run"    // exactly what runs
	SectionPack   Section = "pack"   // the pack, and how far it is trusted
)

// sections returns the facts by section, each with its heading. None is left out:
// facts of unknown sections come last.
func (c *Card) sections() iter.Seq2[string, []Fact] {
	headings := map[Section]string{
		SectionChange: "What changed",
		SectionCall:   "What was asked for",
		SectionAccess: "What it may read and change",
		SectionRun:    "Exactly what runs",
		SectionPack:   "The pack",
	}
	return func(yield func(string, []Fact) bool) {
		rest := slices.Clone(c.Facts)
		for _, s := range []Section{SectionChange, SectionCall, SectionAccess, SectionRun, SectionPack, ""} {
			in := func(f Fact) bool { return s == "" || f.Section == s }
			var facts []Fact
			for _, f := range rest {
				if in(f) {
					facts = append(facts, f)
				}
			}
			rest = slices.DeleteFunc(rest, in)
			if len(facts) > 0 && !yield(cmp.Or(headings[s], "Other facts"), facts) {
				return
			}
		}
	}
}

// A Role is what a fact is about.
type Role string

// The roles.
const (
	RoleChange      Role = "change"      // a difference to what was answered before
	RoleRule        Role = "rule"        // a rule that nearly allows the call
	RoleApprovers   Role = "approvers"   // who may allow the call
	RoleField       Role = "field"       // a value that the person fills in
	RoleFile        Role = "file"        // the file to read
	RoleTool        Role = "tool"        // a tool to enable
	RoleAsked       Role = "asked"       // an argument of the call
	RoleEffect      Role = "effect"      // what comes of it
	RoleChosen      Role = "chosen"      // that a person chose it, the client says
	RoleHidden      Role = "hidden"      // that text has characters that do not show
	RolePerson      Role = "person"      // whose token it is
	RoleClient      Role = "client"      // what the client calls itself
	RoleSandbox     Role = "sandbox"     // how the run is confined
	RoleGap         Role = "gap"         // what the confinement does not cover
	RoleReads       Role = "reads"       // a folder or file that the run may read
	RoleWrites      Role = "writes"      // a folder that the run may change
	RoleNetwork     Role = "network"     // what the run can reach
	RoleHome        Role = "home"        // that HOME is the user's own
	RoleMissing     Role = "missing"     // what was granted and is not given
	RoleCache       Role = "cache"       // what is kept between runs
	RoleLimits      Role = "limits"      // processes and memory
	RoleTimeout     Role = "timeout"     // when it is stopped
	RoleOnce        Role = "once"        // why only "once" is offered
	RoleClaim       Role = "claim"       // the pack's word that nothing is changed
	RoleProgram     Role = "program"     // the file that is started
	RoleInterpreter Role = "interpreter" // a program that runs it
	RoleArgument    Role = "argument"    // one argument of the program
	RoleInput       Role = "input"       // what the program reads
	RoleFolder      Role = "folder"      // where it runs
	RoleVariable    Role = "variable"    // a variable that it gets
	RolePack        Role = "pack"        // the pack's folder
	RoleTrust       Role = "trust"       // where the pack comes from
	RoleDigest      Role = "digest"      // of the pack
	RoleUpdate      Role = "update"      // what the last update of the pack changed
	RoleScan        Role = "scan"        // what a scan of the pack finds
)

// Size returns how many bytes the texts of c have.
func (c *Card) Size() int {
	n := len(c.Title) + len(c.Command)
	for _, m := range c.Marks {
		n += len(m.Role) + len(m.Text) + len(m.Weight)
	}
	for _, f := range c.Facts {
		n += len(f.Role) + len(f.Section) + len(f.Label) + len(f.Value) + len(f.Weight)
	}
	for _, q := range c.Quotes {
		n += len(q.Who) + len(q.Text)
	}
	return n
}

// characters returns how much of c a person has to read. It does not count the
// command, which the facts repeat.
func (c *Card) characters() int {
	n := utf8.RuneCountInString(c.Title)
	for _, f := range c.Facts {
		n += utf8.RuneCountInString(f.Label) + utf8.RuneCountInString(f.Value)
	}
	for _, q := range c.Quotes {
		n += utf8.RuneCountInString(q.Text)
	}
	return n
}

// Safe returns c with everything escaped once more, for showing the cards of another
// program. It does not change a card that [New] made.
func (c *Card) Safe() Card {
	safe := Card{Title: line(c.Title), Command: line(c.Command), Marks: slices.Clone(c.Marks), Facts: slices.Clone(c.Facts), Quotes: slices.Clone(c.Quotes)}
	for i, m := range safe.Marks {
		safe.Marks[i] = Mark{Role(line(string(m.Role))), line(m.Text), Weight(line(string(m.Weight)))}
	}
	for i, f := range safe.Facts {
		safe.Facts[i] = Fact{Role(line(string(f.Role))), Section(line(string(f.Section))), line(f.Label), line(f.Value), Weight(line(string(f.Weight)))}
	}
	for i, q := range safe.Quotes {
		safe.Quotes[i] = Quote{line(q.Who), unmarked(safetext.Text(q.Text))}
	}
	return safe
}
