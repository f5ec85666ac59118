package redact

import (
	"strings"
)

// Text removes from text what looks like a secret:
//
//   - what follows a secret's name: token=X, "apiKey": "X", Authorization: Bearer X,
//   - what follows an option with such a name: --token X, --token=X,
//   - what follows Bearer or Basic,
//   - the password in https://user:X@host, and a long user without one.
//
// It is for records. It goes by spelling, so it sometimes finds too much, and cannot
// find everything. It takes linear time.
func Text(text string) string {
	if !strings.ContainsAny(text, ":= \t") {
		return text
	}
	s := scanner{text: text}
	for s.at < len(text) {
		s.step()
	}
	if s.out == nil {
		return text
	}
	return string(append(s.out, text[s.kept:]...))
}

// Args is [Text] for the arguments of a program: an option with a secret's name hides
// the next argument. The value in NAME=VALUE, and the part after the colon in the
// value of curl's -u, are hidden to the end.
func Args(argv []string) []string {
	out := make([]string, len(argv))
	before := "" // the option that takes this argument
	for i, arg := range argv {
		name, value, assigned := strings.Cut(arg, "=")
		option := strings.HasPrefix(arg, "-") && len(arg) > 1
		switch {
		case isUserOption(before) && strings.Contains(arg, ":"):
			user, _, _ := strings.Cut(arg, ":")
			out[i] = user + ":" + Mark
		case before != "" && SensitiveName(before) && !strings.HasPrefix(arg, "--"):
			out[i] = Mark
		case assigned && value != "" && isName(name) && (SensitiveName(name) || isUserOption(name) && strings.Contains(value, ":")):
			out[i] = name + "=" + Mark
		default:
			out[i] = Text(arg)
		}
		before = ""
		if option && !assigned {
			before = arg
		}
	}
	return out
}

// isUserOption reports whether option takes USER:PASSWORD, as in curl.
func isUserOption(option string) bool {
	switch option {
	case "-u", "--user", "-U", "--proxy-user", "--basic-auth", "--userinfo":
		return true
	}
	return false
}

// isName reports whether s can be a name: no spaces, no quotes.
func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// isNameByte treats every non-ASCII byte as a letter.
func isNameByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '-' || c == '.' || c >= 0x80
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// A scanner reads a text once.
type scanner struct {
	text string
	at   int    // where to look next
	out  []byte // the output for text[:kept]; nil: unchanged
	kept int
}

// hide replaces text[from:to], and continues after it.
func (s *scanner) hide(from, to int) {
	if s.at = max(s.at, to); from >= to {
		return
	}
	s.out = append(s.out, s.text[s.kept:from]...)
	s.out = append(s.out, Mark...)
	s.kept = to
}

// step handles the next name, or the next byte outside names.
func (s *scanner) step() {
	text := s.text
	if strings.HasPrefix(text[s.at:], "://") {
		s.userinfo()
		return
	}
	if !isNameByte(text[s.at]) {
		s.at++
		return
	}
	from := s.at
	for s.at < len(text) && isNameByte(text[s.at]) {
		s.at++
	}
	name := text[from:s.at]
	if len(name) > maxName {
		return
	}
	end := s.at
	if end < len(text) && (text[end] == '"' || text[end] == '\'') {
		end++ // "name": …
	} else if strings.HasPrefix(text[end:], `\"`) {
		end += 2 // the same in JSON within JSON
	}
	spaces := s.skip(end)
	switch {
	case spaces < len(text) && (text[spaces] == ':' || text[spaces] == '=') && !strings.HasPrefix(text[spaces:], "://"):
		if SensitiveName(name) {
			s.value(s.skip(spaces+1), text[spaces] == ':' && s.skip(spaces+1) > spaces+1)
		}
	case spaces > end && end == s.at && name[0] == '-':
		if SensitiveName(name) && !strings.HasPrefix(text[spaces:], "--") {
			s.value(spaces, false)
		}
	case spaces > end && end == s.at:
		s.scheme(name, spaces)
	}
}

// skip returns the first offset at or after at that is not a space.
func (s *scanner) skip(at int) int {
	for at < len(s.text) && isSpace(s.text[at]) {
		at++
	}
	return at
}

// scheme hides the credentials after the name of an HTTP authentication scheme.
func (s *scanner) scheme(name string, from int) {
	least := 8
	switch strings.ToLower(name) {
	case "bearer":
	case "basic":
		least = 16 // an English word may follow
	default:
		return
	}
	to := from
	for to < len(s.text) && (isNameByte(s.text[to]) || strings.IndexByte("~+/=", s.text[to]) >= 0) {
		to++
	}
	if to-from >= least {
		s.hide(from, to)
	}
}

// value hides the value that begins at from: the quoted text, or else up to the end
// of the line or word.
func (s *scanner) value(from int, line bool) {
	text := s.text
	if from >= len(text) {
		return
	}
	quote, inner := text[from:from+1], from+1
	if strings.HasPrefix(text[from:], `\"`) || strings.HasPrefix(text[from:], `\'`) {
		quote, inner = text[from:from+2], from+2
	}
	if last := quote[len(quote)-1]; last == '"' || last == '\'' {
		to := inner
		for to < len(text) && !strings.HasPrefix(text[to:], quote) {
			if text[to] == '\\' && len(quote) == 1 && last == '"' && to+1 < len(text) {
				to++
			}
			to++
		}
		s.hide(inner, min(to, len(text)))
		return
	}
	stop := " \t\r\n\"'&;|<>"
	if line {
		stop = "\r\n\"'"
	}
	to := from
	for to < len(text) && strings.IndexByte(stop, text[to]) < 0 {
		to++
	}
	s.hide(from, to)
	if text[from:to] == "" || line {
		return
	}
	switch strings.ToLower(text[from:to]) {
	case "bearer", "basic", "token", "digest", "negotiate", "apikey":
		if next := s.skip(to); next > to {
			s.value(next, false)
		}
	}
}

// userinfo hides the credentials before the @ of the URL whose "://" comes next.
func (s *scanner) userinfo() {
	const longUser = 20 // bytes: too long for a name, so a token
	from := s.at + len("://")
	s.at = from
	at, colon := -1, -1
	to := from
	for ; to < len(s.text) && strings.IndexByte("/?# \t\r\n\"'<>\\", s.text[to]) < 0; to++ {
		switch s.text[to] {
		case '@':
			at = to
		case ':':
			if colon < 0 {
				colon = to
			}
		}
	}
	switch {
	case at < 0:
	case colon >= 0 && colon < at:
		s.hide(colon+1, at)
	case at-from >= longUser:
		s.hide(from, at)
	}
}
