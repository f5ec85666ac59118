package search

import "strings"

// stem returns the part that a word shares with its other forms: "deploy" for
// "deploy", "deploys", "deployed" and "deployment". It handles English words in lower
// case, by M. F. Porter's rules (An algorithm for suffix stripping, 1980), and
// returns any other word unchanged.
func stem(word string) string {
	if len(word) < 3 {
		return word
	}
	for i := range len(word) {
		if c := word[i]; c < 'a' || c > 'z' {
			return word
		}
	}
	s := plural(word)
	s = pastOrRunning(s)
	if n := len(s); n > 2 && s[n-1] == 'y' && !isVowel(s, n-2) {
		s = s[:n-1] + "i" // except in words like "deploy", unlike Porter
	}
	for _, rules := range [][]ending{longEndings, endings} {
		for _, e := range rules {
			if t, ok := strings.CutSuffix(s, e.is); ok {
				if measure(t) > 0 {
					s = t + e.becomes
				}
				break
			}
		}
	}
	s = lastEnding(s)
	if t, ok := strings.CutSuffix(s, "e"); ok {
		if m := measure(t); m > 1 || m == 1 && !endsShort(t) {
			s = t
		}
	}
	if strings.HasSuffix(s, "ll") && measure(s) > 1 {
		s = s[:len(s)-1]
	}
	return s
}

// An ending is replaced by another if there is a syllable before it. If several
// endings fit, the first counts.
type ending struct{ is, becomes string }

var ( // never modified
	longEndings = []ending{
		{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"}, {"bli", "ble"},
		{"alli", "al"}, {"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"}, {"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"},
		{"alism", "al"}, {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"},
		{"biliti", "ble"}, {"logi", "log"},
	}
	endings = []ending{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""},
	}
	lastEndings = []string{
		"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
	}
)

func plural(s string) string {
	switch {
	case strings.HasSuffix(s, "sses"), strings.HasSuffix(s, "ies"):
		return s[:len(s)-2]
	case strings.HasSuffix(s, "ss"):
		return s
	}
	return strings.TrimSuffix(s, "s")
}

func pastOrRunning(s string) string {
	if t, ok := strings.CutSuffix(s, "eed"); ok {
		if measure(t) > 0 {
			return s[:len(s)-1]
		}
		return s
	}
	t, ok := strings.CutSuffix(s, "ed")
	if !ok {
		t, ok = strings.CutSuffix(s, "ing")
	}
	if !ok || !hasVowel(t) {
		return s
	}
	switch {
	case strings.HasSuffix(t, "at"), strings.HasSuffix(t, "bl"), strings.HasSuffix(t, "iz"):
		return t + "e"
	case endsDouble(t) && !strings.ContainsRune("lsz", rune(t[len(t)-1])):
		return t[:len(t)-1]
	case measure(t) == 1 && endsShort(t):
		return t + "e"
	}
	return t
}

func lastEnding(s string) string {
	longest := ""
	for _, e := range lastEndings {
		if len(e) > len(longest) && strings.HasSuffix(s, e) {
			longest = e
		}
	}
	t := s[:len(s)-len(longest)]
	if longest == "" || measure(t) < 2 || longest == "ion" && !strings.HasSuffix(t, "s") && !strings.HasSuffix(t, "t") {
		return s
	}
	return t
}

// isVowel reports whether the letter at i is a vowel. A y is one after a consonant.
func isVowel(s string, i int) bool {
	switch s[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	case 'y':
		return i > 0 && !isVowel(s, i-1)
	}
	return false
}

func hasVowel(s string) bool {
	for i := range len(s) {
		if isVowel(s, i) {
			return true
		}
	}
	return false
}

// measure returns how many times consonants follow vowels.
func measure(s string) int {
	n, before := 0, false
	for i := range len(s) {
		vowel := isVowel(s, i)
		if before && !vowel {
			n++
		}
		before = vowel
	}
	return n
}

// endsDouble reports whether s ends in the same consonant twice.
func endsDouble(s string) bool {
	n := len(s)
	return n > 1 && s[n-1] == s[n-2] && !isVowel(s, n-1)
}

// endsShort reports whether s ends in consonant, vowel, consonant, as "hop" does, and
// the last of these is not w, x or y.
func endsShort(s string) bool {
	n := len(s)
	return n > 2 && !isVowel(s, n-1) && isVowel(s, n-2) && !isVowel(s, n-3) && !strings.ContainsRune("wxy", rune(s[n-1]))
}
