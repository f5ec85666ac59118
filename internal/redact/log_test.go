package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestLoggedArgs(t *testing.T) {
	got := New("hunter22", "12\n", "", " ").LoggedArgs(
		[]string{"-v", "hunter22", "x=hunter22", "--pin=12", "12", "/12/", "123", "a12", "--token", "zzz", "-H", "Authorization: Bearer zzz", "https://u:zzz@h", "é12é", "12é"},
	)
	want := []string{"-v", "[redacted]", "x=[redacted]", "--pin=[redacted]", "[redacted]", "/[redacted]/", "123", "a12", "--token", "[redacted]",
		"-H", "Authorization: [redacted]", "https://u:[redacted]@h", "é12é", "12é"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("LoggedArgs differs (-want +got):\n%s", diff)
	}
}

func TestLoggedValue(t *testing.T) {
	secrets := New(`pa/ss"word`, "two\nlines of it", "12345678", "x1")
	for in, want := range map[string]string{
		`{}`:                                  `{}`,
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
		if got := secrets.LoggedValue(decode(t, in)).String(); got != want {
			t.Errorf("LoggedValue(%s)\n= %s\nwant %s", in, got, want)
		}
	}
}

// decode decodes JSON, with numbers as written.
func decode(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// A secret with several lines is removed even if a program shows the lines one by
// one, or breaks its base64 into lines.
func TestHideLines(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 3) + "abc\n-----END PRIVATE KEY-----\n"
	hidden := New(key)
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
		got := hidden.Hide(text)
		if strings.Contains(got, "MIIE") || strings.Contains(got, "TUlJ") || strings.Contains(got, "PRIVATE") || strings.Contains(got, "LS0t") {
			t.Errorf("Hide(%q) = %q", text, got)
		}
	}
}

// FuzzHide: a secret appears in none of its forms, whatever the surrounding text.
func FuzzHide(f *testing.F) {
	f.Add("hunter22", "before", "after", byte(0))
	f.Add("a\nb\"c/d<\xff", "\\", "\\u00", byte(0))
	f.Add("ghp_Zm9v+/Yg==?x y", "x", "", byte(9))
	f.Add("😀é日本", "", "x", byte(8))
	f.Fuzz(func(t *testing.T, secret, before, after string, form byte) {
		// A secret that contains the mark's brackets, or is a part of the mark, may appear
		// because of it.
		if len(secret) < minSecret || strings.ContainsAny(secret, "[]") || strings.Contains(Mark, secret) || len(secret) > 1000 {
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
		hidden := New(secret)
		text := before + spelled + after
		got := hidden.Hide(text)
		if strings.Contains(got, spelled) && !strings.Contains(Mark, spelled) {
			t.Errorf("Hide(%q) = %q has %q", text, got, spelled)
		}
		for _, arg := range hidden.LoggedArgs([]string{text}) {
			if strings.Contains(arg, spelled) && !strings.Contains(Mark, spelled) {
				t.Errorf("LoggedArgs(%q) = %q has %q", text, arg, spelled)
			}
		}
		// In a call's arguments, however they are written.
		if form%10 == 0 && utf8.ValidString(text) {
			raw := `{"a":["` + inJSON(text)[int(form/10)%8] + `"]}`
			var v struct{ A []string }
			if err := json.Unmarshal([]byte(New(secret).LoggedValue(decode(t, raw)).String()), &v); err != nil || len(v.A) != 1 {
				t.Fatalf("LoggedValue(%s) is no JSON: %v", raw, err)
			}
			if strings.Contains(v.A[0], secret) && inJSON(text)[int(form/10)%8] != inJSON(inJSON(text)[0])[0] {
				t.Errorf("LoggedValue(%s) = %q has %q", raw, v.A[0], secret)
			}
		}
	})
}
