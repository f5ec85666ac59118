package rules

import (
	"path"
	"strings"
)

// A call that nearly matches a denial was likely written to get around it, or
// means the same in other words: "git -c x push" and "git push". The search errs
// on the side of asking.

// An arg is an argument as it is compared with words.
type arg struct {
	text  string // folded
	clean string // text as a clean path; unchanged if it is not a path
	// option is an option's name without dashes and value: "output" of
	// "--output=x", "r" of "-r"; empty if the argument is not an option.
	option  string
	cluster bool // one dash: may be several options, or one with its value
}

func argOf(text string) arg {
	a := arg{text: folded(text)}
	a.clean = a.text
	if strings.Contains(a.text, "/") {
		a.clean = path.Clean(a.text)
	}
	if rest, ok := strings.CutPrefix(a.text, "-"); ok {
		a.option, _, _ = strings.Cut(strings.TrimLeft(rest, "-"), "=")
		a.cluster = !strings.HasPrefix(rest, "-")
	}
	return a
}

// args returns the arguments in the form compared with words.
func (s *subject) args() []arg {
	if s.seen == nil {
		for _, text := range s.Args {
			s.seen = append(s.seen, argOf(text))
		}
	}
	return s.seen
}

// nearly reports whether all words of r's argv are in the call. Words that are
// not options must be in order, the first of them as the program or, after
// another program such as env, as an argument.
func (r *Rule) nearly(s *subject) bool {
	words, options := r.words()
	if len(words)+len(options) == 0 {
		return false // only stars: everything would be near
	}
	at := 0 // the element to compare next; 0 is the program
	for _, w := range words {
		for ; ; at++ {
			if at > len(s.Args) {
				return false
			}
			if at == 0 && s.forbidden(w) || at > 0 && s.args()[at-1].has(w) {
				break
			}
		}
		at++
	}
	for _, o := range options {
		if !s.hasOption(o) {
			return false
		}
	}
	return true
}

// words returns the elements of r's argv that are more than stars, folded. An
// option with a value is both a word and an option, and the program is the last
// element of its path.
func (r *Rule) words() (words []string, options []arg) {
	for i, p := range r.Argv {
		if i == 0 && isPath(p) {
			if base := path.Base(folded(p)); fixed(base) {
				p = base
			}
		}
		if !fixed(p) {
			continue
		}
		a := argOf(p)
		if a.option == "" || i == 0 {
			words = append(words, a.text)
			continue
		}
		options = append(options, a)
		if _, value, _ := strings.Cut(a.text, "="); fixed(value) {
			words = append(words, value)
		}
	}
	return words, options
}

// has reports whether a is the word or ends in it: as the value of an option
// ("-cpush", "--run=push", "of=/dev/sda") or as the last element of a path.
func (a *arg) has(word string) bool {
	return glob(word, a.text) || glob(word, a.clean) || glob("*="+word, a.text) || glob("*/"+word, a.text) ||
		strings.HasPrefix(a.text, "-") && glob("*"+word, a.text)
}

// hasOption reports whether some argument is the option, with any number of
// dashes, is an abbreviation of its long name or a long name for its letter, or
// whether all its letters occur after single dashes.
func (s *subject) hasOption(o arg) bool {
	var letters strings.Builder // the letters of all clusters
	args := s.args()
	for i, a := range args {
		switch {
		case glob(o.text, a.text):
			return true
		case a.option == "":
			continue
		case glob(o.option, a.option),
			!o.cluster && strings.HasPrefix(o.option, a.option),
			o.cluster && len(o.option) == 1 && strings.HasPrefix(a.option, o.option),
			o.cluster && i+1 < len(args) && glob(o.text, a.text+args[i+1].text): // its value as the next argument, or joined to it
			return true
		case a.cluster:
			letters.WriteString(a.text)
		}
	}
	there := letters.String()
	missing := func(r rune) bool { return r != '*' && !strings.ContainsRune(there, r) }
	return o.cluster && there != "" && !strings.ContainsFunc(o.option, missing)
}
