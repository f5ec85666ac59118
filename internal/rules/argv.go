package rules

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// A subject is a call that rules are being compared with.
type subject struct {
	Call
	windows bool
	seen    []arg // of Args, made when needed
}

// argv reports whether r's patterns match the program and all its arguments. It
// compares each element with each pattern at most once.
func (r *Rule) argv(s *subject) bool {
	if r.Argv == nil {
		return true
	}
	patterns := r.Argv
	// now[i] means that patterns[:i] match the elements before this one.
	now, next := make([]bool, len(patterns)+1), make([]bool, len(patterns)+1)
	now[0] = true
	for element := range 1 + len(s.Args) {
		clear(next)
		for i, p := range patterns {
			switch {
			case !now[i]:
			case p == anyNumber:
				now[i+1], next[i] = true, true
			case element == 0 && r.program(p, s), element > 0 && glob(p, s.Args[element-1]):
				next[i+1] = true
			}
		}
		if !slices.Contains(next, true) {
			return false
		}
		now, next = next, now
	}
	last := len(patterns)
	for last > 0 && !now[last] && patterns[last-1] == anyNumber {
		last--
	}
	return now[last]
}

// program reports whether pattern matches the program of s.
func (r *Rule) program(pattern string, s *subject) bool {
	if r.Effect == Allow {
		return s.allowed(pattern)
	}
	return s.forbidden(pattern)
}

// forbidden reports whether pattern matches the program in a denial or a
// question. Any name of the program counts, in any letter case, since some file
// systems ignore case, and with or without ".exe". A program without a known
// name may be the one, so it matches.
func (s *subject) forbidden(pattern string) bool {
	pattern = folded(pattern)
	whole := isPath(pattern)
	matches := func(name string) bool {
		name = clean(folded(name))
		if !whole {
			name = path.Base(name)
		}
		return glob(pattern, name) || glob(pattern, strings.TrimSuffix(name, exe)) || s.windows && glob(pattern, name+exe)
	}
	return len(s.Program) == 0 || slices.ContainsFunc(s.Program, matches)
}

// allowed reports whether pattern matches the program in an allowance. A name
// without a slash must be the name that was asked for and found on the user's
// own PATH; a path must be where the program was found. Names behind links do
// not count: a program may do something else under each name.
func (s *subject) allowed(pattern string) bool {
	if len(s.Program) == 0 {
		return false
	}
	asked := s.plain(s.Program[0])
	pattern = s.plain(pattern)
	switch {
	case !isPath(pattern):
		return s.Bare && !isPath(asked) && s.same(pattern, asked)
	case strings.HasPrefix(pattern, "./"):
		return strings.HasPrefix(asked, "./") && s.same(pattern, clean(asked))
	}
	return len(s.Program) > 1 && s.same(pattern, clean(s.plain(s.Program[1])))
}

// exe is the suffix of a program's name that may be left out on Windows.
const exe = ".exe"

// plain returns a name or pattern in the form compared on this system.
func (s *subject) plain(name string) string {
	if !s.windows {
		return name
	}
	lower := func(r rune) rune { // only letters with a single lower case form
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}
	return strings.Map(lower, strings.ReplaceAll(name, `\`, "/"))
}

func (s *subject) same(pattern, name string) bool {
	if glob(pattern, name) {
		return true
	}
	short, long := strings.CutSuffix(name, exe)
	return s.windows && (long && glob(pattern, short) || !long && glob(pattern, name+exe))
}

// folded returns text without letter case, with slashes, and without the
// invisible characters that some file systems ignore.
func folded(text string) string {
	// Upper case first: some file systems treat "ſ" as a lower case "S".
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, text)
}

// isPath reports whether a program is named by more than a bare name.
func isPath(name string) bool { return strings.ContainsAny(name, `/\`) }

// clean is path.Clean, but keeps a leading "./" and leaves a bare name
// unchanged.
func clean(name string) string {
	switch c := path.Clean(name); {
	case !strings.Contains(name, "/"):
		return name
	case strings.HasPrefix(name, "./") && !strings.HasPrefix(c, "../") && c != "..":
		return "./" + c
	default:
		return c
	}
}
