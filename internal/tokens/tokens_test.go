package tokens

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// The tokens are assembled here, so that scanners for tokens in repositories
// find none.
const (
	word36 = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
	awsID  = "AKIA" + "IOSFODNN7EXAMPLE"
	awsKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	jwt    = "eyJ" + "hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	pem    = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\nAAAA\n-----END OPENSSH PRIVATE KEY-----"
)

func TestHide(t *testing.T) {
	for _, token := range []string{
		"ghp_" + word36, "gho_" + word36, "ghu_" + word36, "ghs_" + word36, "ghr_" + word36,
		"github_pat_" + "11ABCDEFG0" + word36 + "_" + word36,
		"glpat-" + word36[:20], "sk-" + word36, "sk-proj-" + word36 + "-_" + word36, "sk-ant-" + "api03-" + word36 + "_" + word36, "sk-or-v1-" + strings.Repeat("0a1b", 16),
		"sk_live_" + word36[:24], "rk_live_" + word36[:24], "sk_test_" + word36[:24], "whsec_" + word36,
		awsID, "ASIA" + "IOSFODNN7EXAMPLE",
		"xox" + "b-2345678901-2345678901234-" + word36[:24], "xox" + "p-2345678901-" + word36, "xapp-" + "1-A012-345-" + word36,
		"npm_" + word36, "pypi-" + "AgEIcHlwaS5vcmc" + word36 + word36, "AIza" + word36[:35], "ya29." + word36, "GOCSPX-" + word36[:28],
		"hf_" + word36[:34], "SG." + word36[:22] + "." + word36 + "abcdefg", "dop_v1_" + strings.Repeat("0a1b2c3d", 8), jwt, pem,
	} {
		for _, around := range []string{"%", "a % b", "--token=%", `"%"`, "https://u:%@example.com/x", "(%)", "%\n", "X:%,Y", "/tmp/%/x"} {
			text, want := strings.ReplaceAll(around, "%", token), strings.ReplaceAll(around, "%", Mark)
			if got := Hide(text); got != want {
				t.Errorf("Hide(%q) = %q, want %q", text, got, want)
			}
		}
	}
	// Wherever a text was cut, little of a token remains.
	for _, token := range []string{
		"ghp_" + word36, "github_pat_" + "11ABCDEFG0" + word36, "glpat-" + word36[:20], "sk-" + word36, "sk-ant-" + "api03-" + word36, "sk_live_" + word36[:24], "whsec_" + word36,
		"xox" + "b-2345678901-" + word36, "npm_" + word36, "pypi-" + "AgEIcHlwaS5vcmc" + word36, "AIza" + word36[:35], "hf_" + word36[:34], awsID, jwt,
	} {
		for n := 16; n < len(token); n++ {
			for _, mark := range []string{"…", `\u2026`} {
				if got, want := Hide("path /tmp/"+token[:n]+mark), "path /tmp/"+Mark+mark; got != want {
					t.Errorf("Hide(…%s%s) = %q, want %q", token[:n], mark, got, want)
				}
			}
		}
	}
	for text, want := range map[string]string{
		"Authorization: Bearer abc123def456ghi789":                         "Authorization: Bearer " + Mark,
		"authorization: bearer ABCDEFGHIJKLMNOP1":                          "authorization: bearer " + Mark,
		"Authorization: Basic dXNlcjpwYXNzd29yZA==":                        "Authorization: Basic " + Mark,
		`{"Authorization": "token 0123456789abcdef0123"}`:                  `{"Authorization": "token ` + Mark + `"}`,
		"aws " + awsID + ":" + awsKey:                                      "aws " + Mark + ":" + Mark,
		awsID + "\nAWS_SECRET_ACCESS_KEY=" + awsKey + "\n":                 Mark + "\nAWS_SECRET_ACCESS_KEY=" + Mark + "\n",
		"https://hooks.slack.com/services/" + "T0123/B0123/" + word36[:24]: "https://hooks.slack.com/services/" + Mark,
		"not a token: ghp_… task-force-12… sk-learning…":                   "not a token: ghp_… task-force-12… sk-learning…",
		"Bearer " + word36[:9] + "…":                                       "Bearer " + Mark + "…",
		"aws " + awsID + ":" + awsKey[:20] + "…":                           "aws " + Mark + ":" + Mark + "…",
		pem[:60]:                 "" + Mark, // cut off
		"two " + jwt + " " + jwt: "two " + Mark + " " + Mark,
		"x " + pem + " y":        "x " + Mark + " y",
	} {
		if got := Hide(text); got != want {
			t.Errorf("Hide(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestShapes(t *testing.T) {
	if n := len(shapes()); n > 64 {
		t.Errorf("%d shapes, and Hide has a bit for 64", n)
	}
}

func TestHideLeaves(t *testing.T) {
	for _, text := range []string{
		"", "hello", "e9d4f02b5c917314a8e1c7d07e88b3053d0aa901", "sha256:" + strings.Repeat("0123456789abcdef", 4), "sha512-" + strings.Repeat("aB3d", 22) + "==",
		"123e4567-e89b-12d3-a456-426614174000", "sk-learn", "sk-learn-contrib/imbalanced-learn", "pip install sk-learn==1.2.3", "sk-estimator-with-a-long-name-of-words", "task-0123456789abcdef0123456789",
		"risk-assessment2026template01234", "disk-usage", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
		"npm_config_registry=https://example.com", "npm_package_version", "the ghp_ prefix", "ghp_short", "gho_", "github_pat_", "AKIA", "ASIA", "AKIAXYZ", "ASIAN", "eyJhbGciOiJIUzI1NiJ9",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "PRIVATE KEY",
		"the bearer of this letter", "Bearer authentication-is-required", "bearer token", "Authorization: Bearer $TOKEN", "Authorization: Basic", "xoxo", "xox-hugs", "AIza", "hf_hub_download", "hf_transfer", "SG.1",
		"sk_live_", "sk_test_key_of_yours", "whsec_", "glpat-", "glossary-of-all-the-terms-there-are", "C:\\Users\\ada\\sk-learn", "--gh_token", "k8s", "ya29", "xapp-", "dop_v1_",
		"[redacted]", "https://user@example.com/x",
	} {
		if got := Hide(text); got != text {
			t.Errorf("Hide(%q) = %q, want it as it is", text, got)
		}
	}
}

// Real documents contain no tokens, except examples that their authors made up.
func TestHideLeavesRealText(t *testing.T) {
	f, err := os.Open("../../../shared/corpora/packs.tar.gz")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("../shared/corpora/packs.tar.gz is not there")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files, size := 0, 0
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files, size = files+1, size+len(b)
		for line := range strings.Lines(string(b)) {
			example := strings.Contains(line, awsID) || strings.Contains(line, "AIza"+strings.Repeat("X", 35)) || strings.Contains(line, "Example: AIza")
			if got := Hide(line); (got != line) != example {
				t.Errorf("%s: %.200q became %.200q", h.Name, line, got)
			}
		}
	}
	if files < 1000 {
		t.Errorf("%d files of %d bytes: this test shows little", files, size)
	}
}

func TestHideAll(t *testing.T) {
	plain := []string{"git", "push", ""}
	if got := HideAll(plain); &got[0] != &plain[0] {
		t.Errorf("HideAll(%q) = %q, a copy", plain, got)
	}
	for _, tc := range []struct{ in, want []string }{
		{[]string{"curl", "-H", "Authorization: Bearer abc123def456ghi789", "x"}, []string{"curl", "-H", "Authorization: Bearer " + Mark, "x"}},
		{[]string{"set", awsID, awsKey, "x"}, []string{"set", Mark, Mark, "x"}},
		{[]string{"set", awsKey}, []string{"set", awsKey}}, // could be anything
		{[]string{pem[:60], "x"}, []string{Mark, "x"}},
		{[]string{jwt, jwt}, []string{Mark, Mark}},
	} {
		if diff := cmp.Diff(tc.want, HideAll(tc.in)); diff != "" {
			t.Errorf("HideAll(%q) differs (-want +got):\n%s", tc.in, diff)
		}
	}
}

func TestHideJSON(t *testing.T) {
	ghp := "ghp_" + word36
	for in, want := range map[string]string{
		`{"a":1,"b":[true,null,"x"]}`:                              `{"a":1,"b":[true,null,"x"]}`,
		`{"a":"` + ghp + `"}`:                                      `{"a":"` + Mark + `"}`,
		`{"a":"\u0067hp_` + word36 + `","n":1e99}`:                 `{"a":"` + Mark + `","n":1e99}`,
		`{"a":"\u0067"}`:                                           `{"a":"\u0067"}`,
		`{"` + ghp + `":[["x ` + jwt + `"]]}`:                      `{"` + Mark + `":[["x ` + Mark + `"]]}`,
		`["` + strings.ReplaceAll(pem, "\n", `\n`) + `","y"]`:      `["` + Mark + `","y"]`,
		`["` + strings.ReplaceAll(pem[:60], "\n", `\n`) + `","y"]`: `["` + Mark + `","y"]`,
		`{"id":"` + awsID + `","secret":"` + awsKey + `"}`:         `{"id":"` + Mark + `","secret":"` + Mark + `"}`,
		`{"a":"` + awsID + `","secret":"` + awsKey + `","c":"\n"}`: `{"a":"` + Mark + `","secret":"` + Mark + `","c":"\n"}`,
		`{"a":"x\n` + ghp + `"}`:                                   `{"a":"x\n` + Mark + `"}`,
		`{"a":"\t` + ghp + `\n` + jwt + `"}`:                       `{"a":"\t` + Mark + `\n` + Mark + `"}`,
		`["TOKEN=\"` + ghp + `\"","\\n` + ghp + `"]`:               `["TOKEN=\"` + Mark + `\"","\\n` + Mark + `"]`,
	} {
		if got := HideJSON(compact(t, in)).String(); got != want {
			t.Errorf("HideJSON(%s) = %s, want %s", in, got, want)
		}
	}
	if got := HideJSON(strictjson.Compact{}); !got.IsZero() {
		t.Errorf("HideJSON of nothing = %s, want nothing", got)
	}
}

func compact(t *testing.T, text string) strictjson.Compact {
	t.Helper()
	c, err := strictjson.ReadCompact([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func FuzzHideJSON(f *testing.F) {
	f.Add(`{"a":"ghp_` + word36 + `"}`)
	f.Add(`["` + awsID + `","` + awsKey + `"]`)
	f.Add(`"Bearer abc123def456ghi789 -----BEGIN PRIVATE KEY-----\n"`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		got := HideJSON(compact(t, text))
		if !json.Valid([]byte(got.String())) {
			t.Fatalf("HideJSON(%s) = %s, which is no JSON", text, got)
		}
		if again := HideJSON(got); again != got {
			t.Fatalf("HideJSON(%s) = %s, and then %s", text, got, again)
		}
	})
}

func BenchmarkHide(b *testing.B) {
	line := `{"seq":12,"event":"decision","client":"claude-code 2.1","reason":"allowed before, on 20 November 2026","args":{"path":"docs/a.md"},"dir":"/home/ada/site"}`
	for name, text := range map[string]string{
		"plain 1 KiB": strings.Repeat(line, 7), "plain 64 KiB": strings.Repeat(line, 420), "a token in 1 KiB": strings.Repeat(line, 7) + "ghp_" + word36,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Hide(text)
			}
		})
	}
}
