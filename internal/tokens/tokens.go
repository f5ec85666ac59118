// Package tokens knows what the access tokens and private keys of widely used
// services look like, and removes them from texts.
//
// It judges a value by its form, not by its name, so it finds only tokens with a
// distinctive mark, such as "ghp_". A digest, a UUID or a picture in base64 is
// not a token.
package tokens

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Mark replaces a token.
const Mark = "[redacted]"

// A shape describes how one kind of token is written.
type shape struct {
	// marks are texts that such a token begins with, or that are beside it. Most
	// texts have no mark, and then the pattern is not tried.
	marks []string
	// pattern matches the token; with groups, these are the token. It is
	// compiled when a text has a mark, which few programs ever see.
	pattern func() *regexp.Regexp
	// digit says that the token must have a digit. Ordinary words have none.
	digit bool
}

// shapes are in the order in which they are tried. Shapes that include others
// come first.
var shapes = sync.OnceValue(func() []shape {
	re := func(pattern string) func() *regexp.Regexp {
		return sync.OnceValue(func() *regexp.Regexp { return compile(pattern) })
	}
	const cut = `(?:…|\\u2026)`
	return []shape{
		// The rest of a token that was cut off. A shorter beginning reveals
		// nothing.
		{[]string{"AKIA", "ASIA"}, re(`\b((?:AKIA|ASIA)[A-Z2-7]{16})\b[^A-Za-z0-9/+]{1,8}(?:[A-Za-z_]{3,30}[^A-Za-z0-9/+]{1,8})?([A-Za-z0-9/+]{4,39})` + cut), false},
		{
			[]string{
				"eyJ", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-", "glft-", "glagent-", "gloas-",
				"whsec_", "AKIA", "ASIA", "xapp-", "npm_", "pypi-", "AIza", "ya29.", "GOCSPX-", "hf_", "SG.", "dop_v1_",
			},
			re(`\b((?:eyJ|gh[opsur]_|github_pat_|gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|oas)-|whsec_|AKIA|ASIA|xapp-|npm_|pypi-|AIza|ya29\.|GOCSPX-|hf_|SG\.|dop_v1_)[A-Za-z0-9._+=-]{4,})` + cut), false,
		},
		{[]string{"sk-", "xox", "k_live_", "k_test_"}, re(`\b((?:sk-|xox[a-z]-|[srp]k_(?:live|test)_)[A-Za-z0-9_-]{4,})` + cut), true},
		{[]string{"hooks.slack.com/services/"}, re(`hooks\.slack\.com/services/([A-Za-z0-9/]{4,})` + cut), false},
		{[]string{"earer", "EARER"}, re(`(?i)\bbearer[ \t]+([A-Za-z0-9._~+/=-]{4,})` + cut), true},
		{[]string{"uthorization"}, re(`(?i)authorization["']?[ \t]*[:=][ \t]*["']?(?:basic|token)[ \t]+([A-Za-z0-9._~+/=-]{4,})` + cut), false},

		{[]string{"PRIVATE KEY"}, re(`(?s)-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)`), false},
		{[]string{"eyJ"}, re(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`), false}, // JSON Web Token
		{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, re(`\bgh[opsur]_[A-Za-z0-9]{30,}`), true},   // GitHub
		{[]string{"github_pat_"}, re(`\bgithub_pat_[A-Za-z0-9_]{36,}`), true},
		{[]string{"glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-", "glft-", "glagent-", "gloas-"}, re(`\bgl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|oas)-[A-Za-z0-9_.-]{20,}`), false}, // GitLab
		{[]string{"sk-ant-"}, re(`\bsk-ant-[a-z0-9]+-[A-Za-z0-9_-]{20,}`), true},                                                                                                           // Anthropic
		{[]string{"sk-"}, re(`\bsk-(?:proj|svcacct|admin|None|or-v1)-[A-Za-z0-9_-]{20,}`), true},                                                                                           // OpenAI, OpenRouter
		{[]string{"sk-"}, re(`\bsk-[A-Za-z0-9]{20,}`), true},
		{[]string{"k_live_", "k_test_"}, re(`\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,}`), true}, // Stripe
		{[]string{"whsec_"}, re(`\bwhsec_[A-Za-z0-9+=]{24,}`), false},
		// AWS: the id of a key, and its secret if that is beside it.
		{[]string{"AKIA", "ASIA"}, re(`\b((?:AKIA|ASIA)[A-Z2-7]{16})\b(?:[^A-Za-z0-9/+]{1,8}(?:[A-Za-z_]{3,30}[^A-Za-z0-9/+]{1,8})?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|\z))?`), false},
		{[]string{"xox"}, re(`\bxox[a-z]-[A-Za-z0-9-]{10,}`), true}, // Slack
		{[]string{"xapp-"}, re(`\bxapp-[A-Za-z0-9-]{20,}`), true},
		{[]string{"hooks.slack.com/services/"}, re(`hooks\.slack\.com/services/(T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{16,})`), false},
		{[]string{"npm_"}, re(`\bnpm_[A-Za-z0-9]{36}\b`), false},
		{[]string{"pypi-"}, re(`\bpypi-AgE[A-Za-z0-9_-]{50,}`), false},
		{[]string{"AIza"}, re(`\bAIza[A-Za-z0-9_-]{35}`), false}, // Google
		{[]string{"ya29."}, re(`\bya29\.[A-Za-z0-9_-]{20,}`), false},
		{[]string{"GOCSPX-"}, re(`\bGOCSPX-[A-Za-z0-9_-]{20,}`), false},
		{[]string{"hf_"}, re(`\bhf_[A-Za-z0-9]{30,}`), false},                                  // Hugging Face
		{[]string{"SG."}, re(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`), false},           // SendGrid
		{[]string{"dop_v1_"}, re(`\bdop_v1_[a-f0-9]{64}`), false},                              // DigitalOcean
		{[]string{"earer", "EARER"}, re(`(?i)\bbearer[ \t]+([A-Za-z0-9._~+/-]{16,}=*)`), true}, // Authorization
		{[]string{"uthorization"}, re(`(?i)authorization["']?[ \t]*[:=][ \t]*["']?(?:basic|token)[ \t]+([A-Za-z0-9._~+/-]{8,}=*)`), false},
	}
})

func compile(pattern string) *regexp.Regexp {
	rest, begins := strings.CutPrefix(pattern, `\b`)
	if !begins {
		return regexp.MustCompile(pattern)
	}
	if regexp.MustCompile(rest).NumSubexp() == 0 {
		rest = "(" + rest + ")"
	}
	// In source text, as in printf 'a\nghp_…', the letter of an escape may
	// precede a token and is not part of it.
	return regexp.MustCompile(`(?:\b|\\[abfnrtv])` + rest)
}

// A mark is a mark of one shape.
type mark struct {
	text  string
	shape int // the shape's index
}

// A table has the marks of all shapes.
type table struct {
	begins [1 << 16 / 64]uint64 // :: the first two bytes of a mark → a bit
	by     [256][]mark          // :: the first byte → the marks
}

var marks = sync.OnceValue(func() *table {
	t := &table{}
	for i, s := range shapes() {
		for _, text := range s.marks {
			two := int(text[0])<<8 | int(text[1])
			t.begins[two/64] |= 1 << (two % 64)
			t.by[text[0]] = append(t.by[text[0]], mark{text, i})
		}
	}
	return t
})

// MayHave reports whether a text can have a token. If it cannot, [Hide] changes neither
// the text nor any part of it.
func MayHave(text string) bool { return marked(text) != 0 }

// Hide returns text with [Mark] in place of each token. It also replaces the
// beginning of a token that is followed by "…", where the text was cut. It reads
// a text without marks only once.
func Hide(text string) string {
	seen := marked(text)
	if seen == 0 {
		return text
	}
	for i, s := range shapes() {
		if seen&(1<<i) != 0 {
			text = s.hide(text)
		}
	}
	return text
}

// marked returns the shapes of which the text has a mark, a bit for each.
func marked(text string) (seen uint64) {
	t := marks()
	for i := 0; i+1 < len(text); i++ {
		two := int(text[i])<<8 | int(text[i+1])
		if t.begins[two/64]&(1<<(two%64)) == 0 {
			continue
		}
		for _, m := range t.by[text[i]] {
			if strings.HasPrefix(text[i:], m.text) {
				seen |= 1 << m.shape
			}
		}
	}
	return seen
}

func (s *shape) hide(text string) string {
	var out strings.Builder
	kept := 0
	for _, m := range s.pattern().FindAllStringSubmatchIndex(text, -1) {
		groups := m[2:]
		if len(groups) == 0 {
			groups = m
		}
		for ; len(groups) > 0; groups = groups[2:] {
			from, to := groups[0], groups[1]
			if from < 0 || s.digit && !strings.ContainsAny(text[from:to], "0123456789") {
				continue
			}
			out.WriteString(text[kept:from])
			out.WriteString(Mark)
			kept = to
		}
	}
	if kept == 0 {
		return text
	}
	out.WriteString(text[kept:])
	return out.String()
}

// HideAll is [Hide] for texts that belong together, such as the arguments of a
// program. It returns the same slice if no text has a token.
func HideAll(texts []string) []string {
	// Join them, so that a secret is found after the id that it belongs to. Such
	// texts contain no NUL.
	joined := strings.Join(texts, "\x00")
	hidden := Hide(joined)
	if hidden == joined {
		return texts
	}
	if parts := strings.Split(hidden, "\x00"); len(parts) == len(texts) {
		return parts
	}
	parts := slices.Clone(texts) // a private key extended to the end of all texts
	for i, t := range parts {
		parts[i] = Hide(t)
	}
	return parts
}

// HideJSON is [Hide] for the strings in a JSON value. A text without marks, and without
// escapes that may spell one, is not read as JSON.
func HideJSON(c strictjson.Compact) strictjson.Compact {
	text := c.String()
	if c.IsZero() || marked(text) == 0 && !strings.Contains(text, `\u`) && !strings.Contains(text, `\/`) {
		return c
	}
	// Treat it as one text, so that a secret is found after the id that it
	// belongs to.
	whole := true
	if hidden := Hide(text); hidden != text {
		var without strictjson.Compact
		var err error
		if without, err = strictjson.ReadCompact([]byte(hidden)); err == nil {
			c, text = without, hidden
		}
		whole = err == nil
	}
	// A token has no character that must be escaped, but may be written with
	// escapes. An escape before it ends in a letter ("\nghp_"), so that the
	// token seems to be part of a word. A private key has several lines.
	if whole && !strings.Contains(text, `\`) && !strings.Contains(text, "PRIVATE KEY") {
		return c
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return strictjson.Compact{} // empty: better nothing than a secret
	}
	found := false
	v = hideValue(v, &found)
	if !found {
		return c
	}
	return strictjson.Write(v)
}

func hideValue(v any, found *bool) any {
	hide := func(s string) string {
		hidden := Hide(s)
		*found = *found || hidden != s
		return hidden
	}
	switch v := v.(type) {
	case string:
		return hide(v)
	case []any:
		for i := range v {
			v[i] = hideValue(v[i], found)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[hide(key)] = hideValue(value, found)
		}
		return out
	}
	return v
}
