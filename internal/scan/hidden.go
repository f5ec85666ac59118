package scan

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
)

// leastRun is how many invisible characters in a row must be a hidden message: each
// can carry a bit or more, and no script has so many joiners.
const leastRun = 8

// hidden looks for invisible characters, line by line.
func (s *scanner) hidden(f *file) {
	if f.isPlain && f.gap < min(maxBlank, maxMargin) {
		return
	}
	blank := 0
	for i, line := range f.lines {
		if strings.TrimSpace(line) == "" {
			blank++
			continue
		}
		if blank >= maxBlank && i > blank {
			s.report(f, findings.Hit{Rule: ruleHiddenMargin, Line: i + 1, Quote: line})
		}
		blank = 0
		if at := margin(line); at > 0 {
			s.report(f, findings.Hit{Rule: ruleHiddenMargin, Line: i + 1, Quote: line[at:]})
		}
		ascii := true
		for k := range len(line) {
			if c := line[k]; c >= utf8.RuneSelf || c == 0x1b || c == 0x08 {
				ascii = false
				break
			}
		}
		if !ascii {
			s.hiddenLine(f, i+1, line)
		}
	}
}

// How many blanks and blank lines push a text out of view.
const (
	maxMargin = 160
	maxBlank  = 80
)

// margin returns where a text begins after more blanks than anyone scrolls past, or
// 0. Tables and ASCII art may be padded.
func margin(line string) int {
	blanks, seen := 0, false
	for i := range len(line) {
		switch line[i] {
		case ' ':
			blanks++
		case '\t':
			blanks += 8
		case '|':
			return 0
		default:
			if blanks >= maxMargin && seen && len(strings.TrimSpace(line[i:])) >= 8 {
				return i
			}
			blanks, seen = 0, true
		}
	}
	return 0
}

// hiddenLine checks a line with non-ASCII characters.
func (s *scanner) hiddenLine(f *file, n int, line string) {
	var (
		tags, run, bidi, inside, controls int
		spelt                             strings.Builder
		rtl                               bool
		before                            rune
		inFlag                            bool
		longest                           int
	)
	for i, r := range line {
		switch {
		case r == 0x1f3f4:
			inFlag = true
		case letters.IsTag(r):
			if !inFlag {
				tags++
				if 0xe0020 <= r && r < 0xe007f {
					spelt.WriteByte(byte(r - 0xe0000))
				}
			} else if r == 0xe007f {
				inFlag = false
			}
		default:
			inFlag = false
		}
		switch {
		case letters.IsZeroWidth(r) || letters.IsSelector(r):
			run++
			longest = max(longest, run)
		case !letters.IsTag(r):
			run = 0
		}
		switch {
		case letters.IsBidi(r):
			bidi++
			if r == 0x202d || r == 0x202e {
				bidi += 100 // an override is never needed
			}
		case unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko):
			rtl = true
		case r == 0x1b || r == 0x9b || r == 0x08:
			controls++
		case letters.IsZeroWidth(r) && r != 0xfeff || r == 0xad || r == 0x3164 || r == 0x2800:
			after, _ := utf8.DecodeRuneInString(line[i+utf8.RuneLen(r):])
			if letters.IsASCIILetter(before) && letters.IsASCIILetter(after) {
				inside++
			}
		}
		before = r
	}
	if tags > 0 || longest >= leastRun {
		note := ""
		if text := strings.TrimSpace(spelt.String()); text != "" {
			note = fmt.Sprintf("They spell %q.", cut(text, findings.MaxQuote))
		}
		s.report(f, findings.Hit{Rule: ruleHiddenMessage, Line: n, Quote: line, Note: note})
	}
	if bidi > 100 || bidi > 0 && !rtl {
		s.report(f, findings.Hit{Rule: ruleHiddenOrder, Line: n, Quote: line})
	}
	if inside > 0 && longest < leastRun {
		s.report(f, findings.Hit{Rule: ruleHiddenChars, Line: n, Quote: line})
	}
	if controls > 0 {
		s.report(f, findings.Hit{Rule: ruleTerminal, Line: n, Quote: line})
	}
	if word := letters.Lookalike(line); word != "" {
		s.report(f, findings.Hit{Rule: ruleLookalike, Line: n, Quote: word, Note: fmt.Sprintf("Its bytes are %+q.", cut(word, 60))})
	}
}

// saysTwins matches a line that says it shows look-alike letters.
var saysTwins = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)homoglyph|look-?alike|confusable|cyrillic|typosquat`)
})

// leastCode is the length of a short command in base64.
const leastCode = 24

// commandLike matches decoded text that is a command.
var commandLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(curl|wget)\s+(-\S+\s+)*["']?(https?://|\$)|/bin/(ba|z|)sh\b|\bbash -[ci]\b|\b(eval|exec)\(|\bimport (os|socket|subprocess)\b|\bos\.system\(|subprocess\.|/dev/tcp/|\bnc -\w*e|invoke-expression|\biex\b|downloadstring|new-object net\.|powershell|child_process|rm -rf [/~]|\bchmod \+x|ignore (all |the )*previous instructions`)
})

// encoded looks for encoded commands.
func (s *scanner) encoded(f *file) {
	for i, line := range f.lines {
		if len(line) < leastCode || strings.Contains(line, "data:image/") || strings.Contains(line, "data:font/") {
			continue
		}
		from := 0
		for k := 0; k <= len(line); k++ {
			if k < len(line) && letters.IsCodeByte(line[k]) {
				continue
			}
			if k-from >= leastCode {
				s.encodedWord(f, i+1, line[from:k])
			}
			from = k + 1
		}
		if strings.Contains(line, `\x`) {
			for _, found := range hexText().FindAllString(line, -1) {
				raw, err := hex.DecodeString(strings.ReplaceAll(found, `\x`, ""))
				s.decoded(f, i+1, found, string(raw), err == nil && letters.IsASCII(raw))
			}
		}
	}
}

var hexText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:\\x[0-9a-fA-F]{2}){12,}`) })

func (s *scanner) encodedWord(f *file, line int, word string) {
	if raw, err := hex.DecodeString(word); err == nil {
		s.decoded(f, line, word, string(raw), letters.IsASCII(raw))
		return
	}
	text, ok := letters.FromBase64(word)
	s.decoded(f, line, word, text, ok)
}

func (s *scanner) decoded(f *file, line int, word, text string, ok bool) {
	if ok && commandLike().MatchString(text) {
		s.report(f, findings.Hit{Rule: ruleEncodedCommand, Line: line, Quote: word, Note: fmt.Sprintf("It says %q.", findings.Quote(text))})
	}
}

// cut returns at most n bytes of s.
func cut(s string, n int) string { return s[:min(n, len(s))] }
