// Package protect knows the names of files that other programs, in any folder, run,
// trust or read settings from. A run may not change these unseen.
//
// It looks at names only. It does not recognize a git folder by its content.
package protect

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// table is the list of patterns; its own comment describes it.
//
//go:embed names.txt
var table string

// A Names matches paths with the table and with the user's own patterns.
type Names struct {
	exact    map[string][]pattern // :: folded last part → the patterns that end in it
	globs    []pattern            // with a "*" in the last part
	deep     []pattern            // of several parts
	patterns int
}

type pattern struct {
	text   string   // as written
	parts  []string // folded
	reason string
	own    bool // it does not count in folders of dependencies
}

// dependencies reports whether package managers install other people's code in a
// folder with exactly this name.
func dependencies(name string) bool {
	return name == "node_modules" || name == "vendor" || name == "bower_components"
}

// New returns the table's patterns and those of add, without those of remove, which must
// be spelled as in the table. An invalid pattern is an error, and so is one in remove
// that is not in the table.
func New(add, remove []string) (*Names, error) {
	n := &Names{exact: map[string][]pattern{}}
	gone, own := map[string]bool{}, false
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			own = line != "[everywhere]"
			continue
		}
		text, reason, ok := strings.Cut(line, "  ")
		if !ok {
			return nil, fmt.Errorf("protected name %q has no reason", line)
		}
		if slices.Contains(remove, text) {
			gone[text] = true
			continue
		}
		if err := n.add(text, strings.TrimSpace(reason), own); err != nil {
			return nil, err
		}
	}
	for _, text := range remove {
		if !gone[text] {
			return nil, fmt.Errorf("%q is not a protected name: spell it as the list does", text)
		}
	}
	for _, text := range add {
		if err := n.add(text, "you protected it", false); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *Names) add(text, reason string, own bool) error {
	rest, _ := strings.CutSuffix(strings.TrimPrefix(text, "**/"), "/**")
	p := pattern{text: text, reason: reason, own: own}
	for part := range strings.SplitSeq(rest, "/") {
		folded := Fold(part)
		if folded == "" || folded == ".." || strings.Trim(folded, "*") == "" {
			return fmt.Errorf("protected name %q: each part must name something", text)
		}
		if _, err := path.Match(folded, ""); err != nil {
			return fmt.Errorf("protected name %q: %w", text, err)
		}
		p.parts = append(p.parts, folded)
	}
	n.patterns++
	if len(p.parts) > 1 {
		n.deep = append(n.deep, p)
	}
	if last := p.parts[len(p.parts)-1]; strings.ContainsAny(last, `*?[\`) {
		n.globs = append(n.globs, p)
	} else {
		n.exact[last] = append(n.exact[last], p)
	}
	return nil
}

// Reason returns why path, which has slashes, is protected, or "".
func (n *Names) Reason(path string) string {
	parts := strings.Split(path, "/")
	installed := false
	for i, part := range parts {
		parts[i] = Fold(part)
		if IsDotGit(part) {
			return "it is a git folder's name"
		}
		if shortName(parts[i]) {
			return "it may be the short name of another file"
		}
		if p := n.match(parts[:i+1], installed); p != nil {
			return fmt.Sprintf("%s: %s", p.text, p.reason)
		}
		installed = installed || dependencies(part)
	}
	return ""
}

// Above returns why a link at path is protected, or "". A link to a folder would make the
// folder's files match a pattern of several parts.
func (n *Names) Above(path string) string {
	parts := strings.Split(path, "/")
	installed := slices.ContainsFunc(parts[:len(parts)-1], dependencies)
	for i, part := range parts {
		parts[i] = Fold(part)
	}
	for _, p := range n.deep {
		if installed && p.own {
			continue
		}
		for k := 1; k < len(p.parts); k++ {
			if above := (&pattern{parts: p.parts[:k]}); above.ends(parts) {
				return fmt.Sprintf("%s: %s", p.text, p.reason)
			}
		}
	}
	return ""
}

// match returns a pattern that matches the end of the folded parts, or nil. installed
// says that they are in a folder of dependencies.
func (n *Names) match(parts []string, installed bool) *pattern {
	for _, list := range [][]pattern{n.exact[parts[len(parts)-1]], n.globs} {
		for i := range list {
			if p := &list[i]; !(installed && p.own) && p.ends(parts) {
				return p
			}
		}
	}
	return nil
}

func (p *pattern) ends(parts []string) bool {
	if len(parts) < len(p.parts) {
		return false
	}
	parts = parts[len(parts)-len(p.parts):]
	for i, part := range slices.Backward(parts) {
		if ok, err := path.Match(p.parts[i], part); err != nil || !ok {
			return false
		}
	}
	return true
}

// Fold returns the same text for all names that some file system treats as the same. HFS+
// ignores some characters and case. Ext4 and f2fs ignore all default-ignorable characters,
// and treat "ß" as "ss". NTFS ignores case, everything after a colon, and dots and spaces
// at the end.
func Fold(name string) string {
	if ascii(name) {
		name = strings.ToLower(name) // it has only one form, and no ignored characters
	} else {
		name = foldUnicode(name)
	}
	if i := strings.IndexByte(name, ':'); i > 0 {
		name = name[:i]
	}
	if trimmed := strings.TrimRight(name, " ."); trimmed != "" {
		name = trimmed
	}
	return name
}

func foldUnicode(name string) string {
	name = strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, name)
	name = strings.ToLower(norm.NFKC.String(name))
	// Once more: lowering can change the form, and folding twice must give the same.
	name = norm.NFKC.String(strings.ToLower(strings.ToUpper(name)))
	return strings.ReplaceAll(name, "ß", "ss")
}

func ascii(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// ignorable reports whether some file system leaves the character out of a name.
// The set is Unicode's Default_Ignorable_Code_Point, which has all that HFS+
// ignores; format characters beyond it do no harm here.
func ignorable(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// IsDotGit reports whether some file system, or git itself, treats the name as ".git".
func IsDotGit(name string) bool {
	for part := range strings.SplitSeq(name, `\`) { // a separator, for Windows
		if folded := Fold(part); folded == ".git" || folded == "git~1" {
			return true
		}
	}
	return false
}

// shortNames matches the short names (8.3) that Windows makes for old programs.
var shortNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[^~.]{1,6}~[0-9]{1,6}(\.[^.]{0,3})?$`)
})

// gitShort lists the short names, without their last digit, of files that git reads
// in a project.
var gitShort = []string{"gitmod~", "gi7eba~", "gitatt~", "gi7d29~", "gitign~", "gi250a~"}

func shortName(folded string) bool {
	if last := len(folded) - 1; last >= 0 && '0' <= folded[last] && folded[last] <= '9' && slices.Contains(gitShort, folded[:last]) {
		return true
	}
	return runtime.GOOS == "windows" && shortNames().MatchString(folded)
}
