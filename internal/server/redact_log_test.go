package server

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := environSecrets([]string{
		"HOME=/home/somebody", "PATH=/usr/bin:/bin", "PWD=/home/somebody/project", "EMPTY_TOKEN=", "NO_VALUE_TOKEN", "=C:=C:\\some\\folder",
		"OPENAI_API_KEY=sk-openai-1", "openai_apikey=sk-openai-2", "AWS_SECRET_ACCESS_KEY=aws-secret-3", "GITHUB_TOKEN=ghp-token-4",
		"DB_PASSWORD=password-5", "SHORT_TOKEN=1234567", "GOOGLE_APPLICATION_CREDENTIALS=" + file, "STRIPE_KEY=sk-stripe-6", "AGAIN_TOKEN=ghp-token-4",
		"MAX_OUTPUT_TOKENS=16000000", "TOKENIZERS_PARALLELISM=disabled", "GIT_AUTHOR_NAME=Somebody Else",
		"DATABASE_URL=postgres://app:database-7@host/db", "LOCAL_URL=postgres://postgres:postgres@host/db", "WITH_EQUALS_TOKEN=a=b=c=d=e",
		"HUGE_SECRET=" + strings.Repeat("x", maxEnvironSecret+1), "TLS_PRIVATE_KEY=/not/a/file/that/exists",
	})
	want := []string{
		"sk-openai-1", "sk-openai-2", "aws-secret-3", "ghp-token-4", "password-5", "sk-stripe-6", "database-7", "a=b=c=d=e", "/not/a/file/that/exists",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environSecrets differs (-want +got):\n%s", diff)
	}
}

func TestLoggedArgs(t *testing.T) {
	got := loggedArgs(
		[]string{"-v", "hunter22", "x=hunter22", "--pin=12", "12", "/12/", "123", "a12", "--token", "zzz", "-H", "Authorization: Bearer zzz", "https://u:zzz@h", "é12é", "12é"},
		[]string{"hunter22", "12\n", "", " "},
	)
	want := []string{"-v", "[redacted]", "x=[redacted]", "--pin=[redacted]", "[redacted]", "/[redacted]/", "123", "a12", "--token", "[redacted]",
		"-H", "Authorization: [redacted]", "https://u:[redacted]@h", "é12é", "12é"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loggedArgs differs (-want +got):\n%s", diff)
	}
}

func TestRedactExec(t *testing.T) {
	secrets := []string{`pa/ss"word`, "two\nlines of it", "12345678", "x1"}
	for in, want := range map[string]string{
		``:                                    ``,
		`{}`:                                  `{}`,
		`{`:                                   `"[unreadable]"`,
		`{"a": "pa/ss\"word"} {"b": 1}`:       `"[unreadable]"`,
		`{"b": "<&>", "a": 1.50}`:             `{"a":1.50,"b":"<&>"}`,
		`{"command": "pa/ss\"word"}`:          `{"command":"[redacted]"}`,
		`{"a": "\u0070a\/ss\u0022w\u006frd"}`: `{"a":"[redacted]"}`,
		`{"a": {"pa\/ss\"word": ["-two\nlines of it-", ["pa/ss\"word"]]}}`:                                                       `{"a":{"[redacted]":["-[redacted]-",["[redacted]"]]}}`,
		`{"a": 12345678, "b": 912345678, "c": "x1", "d": "ax1"}`:                                                                 `{"a":"[redacted]","b":"9[redacted]","c":"[redacted]","d":"ax1"}`,
		`{"command": "curl", "args": ["--token", "abc", "-u", "me:abc", "-H", "Authorization: Bearer abc", "https://u:abc@h/"]}`: `{"args":["--token","[redacted]","-u","me:[redacted]","-H","Authorization: [redacted]","https://u:[redacted]@h/"],"command":"curl"}`,
		`{"command": "sh", "args": ["-c", "x --password abc; echo pa/ss\\\"word"]}`:                                              `{"args":["-c","x --password [redacted]; echo [redacted]"],"command":"sh"}`,
		`{"password": {"a": 1}}`: `{"password":"[redacted]"}`,
		`"\ud800pa/ss\"word"`:    "\"\ufffd[redacted]\"",
	} {
		if got := string(redactExec(json.RawMessage(in), secrets)); got != want {
			t.Errorf("redactExec(%s)\n= %s\nwant %s", in, got, want)
		}
	}
}

// A secret with several lines is taken out when a program shows them one by
// one, or breaks its base64 into lines.
func TestHideLines(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 3) + "abc\n-----END PRIVATE KEY-----\n"
	hidden := variants([]string{key})
	encoded := base64.StdEncoding.EncodeToString([]byte(key))
	var wrapped strings.Builder
	for len(encoded) > 76 {
		wrapped.WriteString(encoded[:76] + "\r\n")
		encoded = encoded[76:]
	}
	wrapped.WriteString(encoded)
	for _, text := range []string{
		key, strings.ReplaceAll(key, "\n", "\r\n"), strings.ReplaceAll(key, "\n", "\n1: "), strings.ReplaceAll(key, "\n", `\n`), wrapped.String(),
	} {
		got := hide(text, hidden)
		if strings.Contains(got, "MIIE") || strings.Contains(got, "TUlJ") || strings.Contains(got, "PRIVATE") || strings.Contains(got, "LS0t") {
			t.Errorf("hide(%q) = %q", text, got)
		}
	}
}

// Secrets that overlap are both taken out as a whole, by both ways to look for
// them.
func TestFindAll(t *testing.T) {
	for _, c := range []struct {
		text  string
		words []string
		want  string
	}{
		{"abcdef", []string{"abcd", "cdef"}, "[redacted]"},
		{"xabcdefx", []string{"bc", "abcdef", "f"}, "x[redacted]x"},
		{"aaaaa", []string{"aa"}, "[redacted]"},
		{"abcabcab", []string{"abcab"}, "[redacted]"},
		{"she sells hers", []string{"he", "she", "his", "hers"}, "[redacted] sells [redacted]"},
		{"abab", []string{"ab"}, "[redacted][redacted]"},
		{"aabcaabd", []string{"aabd", "abc"}, "a[redacted][redacted]"},
		{"\x00\xff\xfe", []string{"\xff"}, "\x00[redacted]\xfe"},
		{"none", []string{"some"}, "none"},
	} {
		total := 0
		for _, w := range c.words {
			total += len(w)
		}
		if got := cutSpans(c.text, findAll(c.text, c.words)); got != c.want {
			t.Errorf("one by one: %q without %q = %q, want %q", c.text, c.words, got, c.want)
		}
		if got := cutSpans(c.text, newMachine(c.words, total).find(c.text)); got != c.want {
			t.Errorf("at once: %q without %q = %q, want %q", c.text, c.words, got, c.want)
		}
	}
}

// The work is linear in what is given, whatever it is, and too much of it hides
// everything.
func TestHideIsLinear(t *testing.T) {
	const size = 1 << 20
	many := make([]string, 0, 1500)
	for i := range cap(many) {
		many = append(many, strings.Repeat("a", i%13)+"b"+strings.Repeat("c", i%17)+string(rune('a'+i%26)))
	}
	for name, c := range map[string]struct{ text, secret string }{
		"one letter": {strings.Repeat("a", size), strings.Repeat("a", 1000) + "b"},
		"nearly":     {strings.Repeat(strings.Repeat("a", 999)+"c", size/1000), strings.Repeat("a", 1000)},
		"all of it":  {strings.Repeat("ab", size/2), "abab"},
		"long":       {strings.Repeat("a", size), strings.Repeat("a", 20_000)},
	} {
		got := hide(c.text, variants(append([]string{c.secret}, many...)))
		if strings.Contains(got, c.secret) {
			t.Errorf("%s: the secret is still there", name)
		}
	}
	three := []string{strings.Repeat("b", size), strings.Repeat("c", size), strings.Repeat("d", size)}
	if got := hide(strings.Repeat("a", size), three); got != redactedMark {
		t.Errorf("hide with too many secrets = %d bytes, want nothing but the mark", len(got))
	}
}

// FuzzHide: a secret appears in none of its forms, whatever is around it.
func FuzzHide(f *testing.F) {
	f.Add("hunter22", "before", "after", byte(0))
	f.Add("a\nb\"c/d<\xff", "\\", "\\u00", byte(0))
	f.Add("ghp_Zm9v+/Yg==?x y", "x", "", byte(9))
	f.Add("😀é日本", "", "x", byte(8))
	f.Fuzz(func(t *testing.T, secret, before, after string, form byte) {
		// What has the mark's brackets, or is a part of it, may come about by it.
		if len(secret) < minSecret || strings.ContainsAny(secret, "[]") || strings.Contains(redactedMark, secret) || len(secret) > 1000 {
			t.Skip()
		}
		spelled := secret
		if valid := utf8.ValidString(secret); form%10 >= 4 && form%10 < 9 && !valid {
			t.Skip() // no JSON text has it
		}
		switch form % 10 {
		case 1:
			spelled = url.QueryEscape(secret)
		case 2:
			spelled = url.PathEscape(secret)
		case 3:
			spelled = strings.ToLower(hex.EncodeToString([]byte(secret)))
		case 4, 5:
			b, err := json.Marshal(secret)
			if err != nil {
				t.Fatal(err)
			}
			spelled = string(b[1 : len(b)-1])
		case 6:
			spelled = inJSON(secret)[2]
		case 7:
			spelled = inJSON(secret)[4]
		case 8:
			spelled = inJSON(secret)[6]
		case 9:
			spelled = base64.StdEncoding.EncodeToString([]byte(secret))
		}
		hidden := variants([]string{secret})
		text := before + spelled + after
		got := hide(text, hidden)
		if strings.Contains(got, spelled) && !strings.Contains(redactedMark, spelled) {
			t.Errorf("hide(%q) = %q has %q", text, got, spelled)
		}
		for _, arg := range loggedArgs([]string{text}, []string{secret}) {
			if strings.Contains(arg, spelled) && !strings.Contains(redactedMark, spelled) {
				t.Errorf("loggedArgs(%q) = %q has %q", text, arg, spelled)
			}
		}
		// In a call's arguments, however they are written.
		if form%10 == 0 && utf8.ValidString(text) {
			raw := `{"a":["` + inJSON(text)[int(form/10)%8] + `"]}`
			var v struct{ A []string }
			if err := json.Unmarshal(redactExec(json.RawMessage(raw), []string{secret}), &v); err != nil || len(v.A) != 1 {
				t.Fatalf("redactExec(%s) is no JSON: %v", raw, err)
			}
			if strings.Contains(v.A[0], secret) && inJSON(text)[int(form/10)%8] != inJSON(inJSON(text)[0])[0] {
				t.Errorf("redactExec(%s) = %q has %q", raw, v.A[0], secret)
			}
		}
	})
}
