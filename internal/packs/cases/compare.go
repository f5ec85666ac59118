package cases

import (
	"fmt"
	"strconv"
	"strings"
)

// Got holds a run's results.
type Got struct {
	Exit   int
	Signal string // empty: it ended by itself
	Output string
	Stderr string
}

// A Difference is one result that differs from what a case expects.
type Difference struct {
	What string `json:"what"` // exit, output, stderr, or a file's path
	How  string `json:"how"`  // equals, contains, matches or exists
	Want string `json:"want"`
	Got  string `json:"got"`
}

// Compare returns the differences between a run and the case. file returns the
// content of a file in the workspace; its error says why it cannot.
func (c *Case) Compare(got Got, file func(path string) (string, error)) []Difference {
	var all []Difference
	if got.Signal != "" || got.Exit != c.Exit {
		ended := strconv.Itoa(got.Exit)
		if got.Signal != "" {
			ended = "ended by " + got.Signal
		}
		all = append(all, Difference{What: "exit", How: "equals", Want: strconv.Itoa(c.Exit), Got: ended})
	}
	all = append(all, c.Output.compare("output", got.Output)...)
	all = append(all, c.Stderr.compare("stderr", got.Stderr)...)
	for _, f := range c.Files {
		text, err := file(f.Path)
		if err != nil {
			all = append(all, Difference{What: f.Path, How: "exists", Want: "a file", Got: cause(err)})
			continue
		}
		all = append(all, f.compare(f.Path, text)...)
	}
	return all
}

func (c *Check) compare(what, got string) []Difference {
	if c == nil {
		return nil
	}
	var all []Difference
	add := func(how, want string) { all = append(all, Difference{What: what, How: how, Want: want, Got: got}) }
	if c.Equals != nil && strings.TrimRight(*c.Equals, "\r\n") != strings.TrimRight(got, "\r\n") {
		add("equals", *c.Equals)
	}
	for _, part := range c.Contains {
		if !strings.Contains(got, part) {
			add("contains", part)
		}
	}
	if c.Matches != nil && !c.Matches.MatchString(got) {
		add("matches", c.Matches.String())
	}
	return all
}

// maxShown is how many lines of a difference are shown.
const maxShown = 40

// Text returns the difference for people, in lines: expected ones begin with "-",
// actual ones with "+".
func (d *Difference) Text() string {
	var b strings.Builder
	switch d.How {
	case "equals":
		fmt.Fprintf(&b, "%s is not as expected:\n", d.What)
	case "exists":
		fmt.Fprintf(&b, "the file %s was not made: %s\n", d.What, d.Got)
		return b.String()
	case "contains":
		fmt.Fprintf(&b, "%s does not contain:\n", d.What)
	case "matches":
		fmt.Fprintf(&b, "%s does not match:\n", d.What)
	}
	want, got := lines(d.Want), lines(d.Got)
	same := 0
	if d.How == "equals" {
		for same < len(want) && same < len(got) && want[same] == got[same] {
			same++
		}
		const around = 2
		for i := max(0, same-around); i < same; i++ {
			fmt.Fprintf(&b, "  %s\n", want[i])
		}
	}
	show(&b, "- ", want[same:])
	show(&b, "+ ", got[same:])
	return b.String()
}

func show(b *strings.Builder, mark string, all []string) {
	for i, l := range all {
		if i == maxShown {
			fmt.Fprintf(b, "%s… %d more lines\n", mark, len(all)-maxShown)
			return
		}
		fmt.Fprintf(b, "%s%s\n", mark, l)
	}
	if len(all) == 0 {
		fmt.Fprintf(b, "%s(nothing)\n", mark)
	}
}

func lines(s string) []string {
	s = strings.TrimRight(s, "\r\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
