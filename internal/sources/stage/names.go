package stage

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Bounds of names. No system that we know allows longer names or needs deeper
// folders.
const (
	maxSegment = 255
	maxPath    = 1024
	maxDepth   = 32
)

// checkName returns why no entry may have this path. It combines the rules of all
// systems, so that a pack that comes in here comes in everywhere, with the same bytes
// under the same names.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case !utf8.ValidString(name):
		return errors.New("its name is not UTF-8")
	case len(name) > maxPath:
		return fmt.Errorf("its path has %d bytes, and %d is the limit", len(name), maxPath)
	case strings.HasPrefix(name, "/"):
		return errors.New("its path is absolute")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name has control characters")
	case strings.ContainsFunc(name, unseen):
		return errors.New("its name has characters that nobody sees")
	case strings.ContainsAny(name, `\:`):
		return errors.New("its name has a backslash or a colon, which mean a folder or a drive elsewhere")
	case strings.ContainsAny(name, `<>"|?*`):
		return errors.New("its name has a character that Windows allows in none")
	}
	segments := strings.Split(name, "/")
	if len(segments) > maxDepth {
		return fmt.Errorf("it is %d folders deep, and %d is the limit", len(segments)-1, maxDepth)
	}
	for _, s := range segments {
		if err := checkSegment(s); err != nil {
			return err
		}
	}
	return nil
}

func checkSegment(s string) error {
	switch {
	case s == "":
		return errors.New("its path has an empty name in it")
	case s == "." || s == "..":
		return errors.New("its path leads elsewhere")
	case len(s) > maxSegment:
		return fmt.Errorf("a name in its path has %d bytes, and %d is the limit", len(s), maxSegment)
	case strings.HasSuffix(s, ".") || strings.HasSuffix(s, " "):
		return errors.New("a name in its path ends in a dot or a space, which Windows drops")
	}
	plain := visible(s)
	if isGit(plain) {
		return errors.New("its path has git's own folder in it")
	}
	if device(plain) {
		return errors.New("a name in its path is a device on Windows")
	}
	if isShort(plain) {
		return errors.New("a name in its path is one that Windows makes up for another file (a short name)")
	}
	return nil
}

// isShort reports whether a name looks like a short name of Windows (8.3): up to eight
// characters with a tilde and a number, and three after a dot.
func isShort(s string) bool {
	base, ending, _ := strings.Cut(s, ".")
	start, number, ok := strings.Cut(base, "~")
	return ok && start != "" && len(base) <= 8 && number != "" && strings.Trim(number, "0123456789") == "" && len(ending) <= 3
}

// unseen reports whether a character is invisible or reverses others. The two joiners
// are allowed, since some scripts and emoji need them.
func unseen(r rune) bool {
	if r < utf8.RuneSelf || r == '\u200c' || r == '\u200d' {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

// visible returns a name as it is compared by file systems that ignore letter case
// and invisible characters.
func visible(s string) string {
	if isASCII(s) { // nothing in it is invisible, and only letter case counts
		return strings.ToLower(s)
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, fold(s))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isGit(s string) bool { return s == ".git" || s == "git~1" }

// device reports whether Windows takes a name for a device, whatever its ending.
func device(s string) bool {
	base, _, _ := strings.Cut(s, ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "con", "prn", "aux", "nul", "conin$", "conout$", "clock$":
		return true
	}
	number, ok := strings.CutPrefix(base, "com")
	if !ok {
		number, ok = strings.CutPrefix(base, "lpt")
	}
	return ok && utf8.RuneCountInString(number) == 1 && strings.ContainsAny(number, "123456789¹²³")
}

// fold returns the same text for all names that some file system treats as equal.
func fold(s string) string { return norm.NFC.String(cases.Fold().String(norm.NFD.String(s))) }
