package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name that is checked; secrets have shorter names.
const maxName = 256

// SensitiveName reports whether name looks like the name of a secret: of a parameter,
// an option, a header or an environment variable, in any style: api_key, apiKey,
// X-API-Key, APIKEYS. It is sometimes wrong, in both directions.
func SensitiveName(name string) bool {
	if len(name) > maxName {
		return false
	}
	words := nameWords(name)
	if len(words) == 0 {
		return false
	}
	before := ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch words[len(words)-1] {
	case "auth", "bearer", "otp", "totp", "passcode", "jwt", "cookie", "cookies":
		return true
	case "pwd":
		return name != "PWD" && name != "OLDPWD" // the working folder
	case "pin":
		return before == "" // otherwise a pin of a chip
	case "pat", "pass":
		switch before {
		case "", "user", "admin", "root", "login", "db", "database", "mysql", "pg", "postgres", "redis", "smtp", "mail", "ftp", "http", "proxy",
			"github", "gitlab", "gh", "azure", "ado":
			return true
		}
	}
	joined := strings.Join(words, "")
	for _, word := range []string{
		"password", "passwd", "passphrase", "secret", "credential", "authorization", "connectionstring", "apikey",
		"accesskey", "privatekey", "encryptionkey", "signingkey", "sharedkey", "accountkey", "masterkey", "sessionkey",
	} {
		if strings.Contains(joined, word) {
			return true
		}
	}
	return sensitiveToken(words)
}

// sensitiveToken reports whether words mean a token that gives access, rather than a
// number of tokens or a place in a list.
func sensitiveToken(words []string) bool {
	for i, word := range words {
		stem, one := strings.CutSuffix(strings.TrimSuffix(strings.TrimRight(word, "0123456789"), "s"), "token")
		if !one {
			continue
		}
		before := stem
		if before == "" && i > 0 {
			before = words[i-1]
		}
		switch before {
		case "max", "min", "num", "number", "n", "total", "prompt", "completion", "input", "output", "cached", "reasoning", "thinking",
			"page", "continuation", "stop", "special":
			continue
		}
		if i+1 < len(words) {
			switch words[i+1] {
			case "count", "counts", "limit", "budget", "type", "types", "url", "uri", "endpoint", "ttl", "expiry", "usage", "index", "per":
				continue
			}
		}
		return true
	}
	return false
}

// nameWords splits a name into lower-case words, at everything except letters and
// digits, and at the humps of camelCase.
func nameWords(name string) []string {
	var words []string
	start := -1 // of the word that name[:i] ends with
	var last rune
	end := func(i int) {
		if start >= 0 {
			words = append(words, strings.ToLower(name[start:i]))
		}
	}
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end(i)
			start = -1
		case start < 0:
			start = i
		case unicode.IsUpper(r):
			// APIKeys is API and Keys; APIs is one word.
			next, _ := utf8.DecodeRuneInString(name[i+utf8.RuneLen(r):])
			if !unicode.IsUpper(last) || unicode.IsLower(next) && next != 's' {
				end(i)
				start = i
			}
		}
		last = r
	}
	end(len(name))
	return words
}
