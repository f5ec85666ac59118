package rules

import (
	"slices"
	"strings"
	"testing"
)

// slowGlob and slowArgv give the same results as glob and argv, in the plainest
// way.
func slowGlob(pattern, s string) bool {
	switch {
	case pattern == "":
		return s == ""
	case pattern[0] == '*':
		return slowGlob(pattern[1:], s) || s != "" && slowGlob(pattern, s[1:])
	}
	return s != "" && s[0] == pattern[0] && slowGlob(pattern[1:], s[1:])
}

func slowArgv(patterns, argv []string) bool {
	switch {
	case len(patterns) == 0:
		return len(argv) == 0
	case patterns[0] == "**":
		return slowArgv(patterns[1:], argv) || len(argv) > 0 && slowArgv(patterns, argv[1:])
	}
	return len(argv) > 0 && slowGlob(patterns[0], argv[0]) && slowArgv(patterns[1:], argv[1:])
}

// texts returns all texts of up to n of the given letters.
func texts(letters string, n int) []string {
	all := []string{""}
	for last := all; n > 0; n-- {
		var next []string
		for _, s := range last {
			for _, l := range letters {
				next = append(next, s+string(l))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

func TestGlob(t *testing.T) {
	for _, pattern := range texts("ab*", 5) {
		for _, s := range texts("ab", 5) {
			if got, want := glob(pattern, s), slowGlob(pattern, s); got != want {
				t.Fatalf("glob(%q, %q) = %v, want %v", pattern, s, got, want)
			}
		}
	}
}

func checkArgv(t *testing.T, patterns, argv []string) {
	t.Helper()
	call := Call{Kind: "run", Program: argv[:1], Args: argv[1:], Bare: true}
	r := Rule{Effect: Allow, Argv: patterns}
	want := slowArgv(patterns, argv)
	if got := r.argv(&subject{Call: call}); got != want {
		t.Fatalf("%v.argv(%q) = %v, want %v", r, argv, got, want)
	}
	strict := Rule{Effect: Deny, Argv: patterns}
	s := &subject{Call: call}
	if got := strict.argv(s); got != want {
		t.Fatalf("%v.argv(%q) = %v, want %v", strict, argv, got, want)
	}
	// A match is also near: a word that is there is found.
	if len(strings.Trim(strings.Join(patterns, ""), "*")) > 0 && want && !strict.nearly(s) {
		t.Fatalf("%v.nearly(%q) = false, want what matches to be near", strict, argv)
	}
}

func TestArgv(t *testing.T) {
	alphabet := []string{"a", "b", "a*", "**"}
	var lists func(words []string, n int) [][]string
	lists = func(words []string, n int) [][]string {
		if n == 0 {
			return [][]string{nil}
		}
		all := lists(words, n-1)
		for _, l := range slices.Clone(all) {
			if len(l) == n-1 {
				for _, w := range words {
					all = append(all, append(slices.Clone(l), w))
				}
			}
		}
		return all
	}
	for _, patterns := range lists(alphabet, 4) {
		for _, argv := range lists([]string{"a", "b", "ab"}, 4) {
			if len(patterns) > 0 && len(argv) > 0 {
				checkArgv(t, patterns, argv)
			}
		}
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a*b*", "axbx")
	f.Add("**", "")
	f.Add("*/git", "/usr/bin/git")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 12 || len(s) > 24 { // the plain version is slow
			return
		}
		if got, want := glob(pattern, s), slowGlob(pattern, s); got != want {
			t.Fatalf("glob(%q, %q) = %v, want %v", pattern, s, got, want)
		}
	})
}

// Elements are separated by blanks.
func FuzzArgv(f *testing.F) {
	f.Add("git push **", "git push -f")
	f.Add("** a*b ** -c=*", "x a b -c=d")
	f.Add("* -rf* ** --x", "rm -rf . --x")
	f.Fuzz(func(t *testing.T, patterns, argv string) {
		p, a := strings.Split(patterns, " "), strings.Split(argv, " ")
		if len(p) > 6 || len(a) > 6 || len(patterns) > 40 || len(argv) > 60 {
			return
		}
		for _, text := range append(slices.Clone(p), a[0]) { // programs are compared differently
			if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789*=-") != "" {
				return
			}
		}
		if argv := (Rule{Effect: Deny, Argv: p}); argv.Check() != nil || a[0] == "" || a[0][0] == '-' {
			return
		}
		checkArgv(t, p, a)
	})
}
