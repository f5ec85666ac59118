package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSensitiveNameStyles(t *testing.T) {
	for _, name := range []string{
		"API_KEYS", "apiKeys", "APIKeys", "APIKEY", "x-api-key", "api.key", "AWS_SECRET_ACCESS_KEY", "aws_access_key_id", "GITHUB_TOKEN",
		"githubToken", "githubtoken", "tokens", "refreshTokens", "token_value", "TOKEN_PROD", "token2", "--auth-token", "DB_PASS", "github_pat",
		"MYSQL_PWD", "set-cookie", "Cookie", "http_auth", "X-Auth", "ssh_private_key", "connectionString", "oneTimePasscode", "session.jwt",
		"Proxy-Authorization", "clientCredentials", "passPhrase", "encryption-key", "Geheim_secret", "user_otp",
	} {
		if !SensitiveName(name) {
			t.Errorf("SensitiveName(%q) = false, want true", name)
		}
	}
	for _, name := range []string{
		"PWD", "OLDPWD", "maxTokens", "max_output_tokens", "MAX_TOKENS", "num-tokens", "token_count", "tokenLimit", "page_token", "nextPageToken",
		"continuationToken", "stop_tokens", "token_url", "gpio_pin", "low_pass", "path", "key", "primary_key", "sort-key", "tokenize", "authors",
		"AUTHOR_NAME", "compass", "pattern", "--", "", "_", strings.Repeat("token", 100),
	} {
		if SensitiveName(name) {
			t.Errorf("SensitiveName(%q) = true, want false", name)
		}
	}
}

func TestText(t *testing.T) {
	const r = Mark
	for in, want := range map[string]string{
		"":                                     "",
		"nothing to hide":                      "nothing to hide",
		"a secret is kept":                     "a secret is kept",
		"token=abc":                            "token=" + r,
		"token = abc, x":                       "token = " + r + " x",
		"TOKEN=abc cmd --x=y":                  "TOKEN=" + r + " cmd --x=y",
		"export A_TOKEN='a b' B=c":             "export A_TOKEN='" + r + "' B=c",
		`A_TOKEN="a\"b c" B=c`:                 `A_TOKEN="` + r + `" B=c`,
		`{"password": "x", "a": "b"}`:          `{"password": "` + r + `", "a": "b"}`,
		`{"password":"x"}`:                     `{"password":"` + r + `"}`,
		`"{\"password\": \"x y\"}"`:            `"{\"password\": \"` + r + `\"}"`,
		`{'apiKey': 'x', 'a': 1}`:              `{'apiKey': '` + r + `', 'a': 1}`,
		"--token abc --verbose":                "--token " + r + " --verbose",
		"--token --verbose":                    "--token --verbose",
		"-password abc":                        "-password " + r,
		"--token=abc;ls":                       "--token=" + r + ";ls",
		"Authorization: Bearer abc":            "Authorization: " + r,
		"authorization:Bearer abc x":           "authorization:" + r + " " + r + " x",
		"Cookie: a=b; c=d\nHost: h":            "Cookie: " + r + "\nHost: h",
		"X-Api-Key: abc":                       "X-Api-Key: " + r,
		"say Bearer abcdefgh now":              "say Bearer " + r + " now",
		"the bearer of news":                   "the bearer of news",
		"basic knowledge of it":                "basic knowledge of it",
		"Basic dXNlcjpwYXNzd29yZA==":           "Basic " + r,
		"https://u:p@h/":                       "https://u:" + r + "@h/",
		"https://u:p:q@r@h/":                   "https://u:" + r + "@h/",
		"postgres://u:p@h:1/d":                 "postgres://u:" + r + "@h:1/d",
		"https://h:8080/@x":                    "https://h:8080/@x",
		"ssh://git@h/x":                        "ssh://git@h/x",
		"https://ghp_0123456789abcdefghij@h/x": "https://" + r + "@h/x",
		"https://h/?access_token=abc#x":        "https://h/?access_token=" + r,
		"password:":                            "password:",
		"password: ":                           "password: ",
		`password="`:                           `password="`,
		`password="open`:                       `password="` + r,
		"max_tokens=5":                         "max_tokens=5",
		"mot_de_passé=1 schlüssel_secret=2":    "mot_de_passé=1 schlüssel_secret=" + r,
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestArgs(t *testing.T) {
	in := []string{
		"--token", "abc", "--token", "-abc", "--token", "--next", "-u", "me:pass:word", "--user=me:pass", "-u", "1000", "--password=a b;c&d",
		"-e", "TOKEN=a b", "-H", "Authorization: Bearer x y", "--api-key", "", "https://u:p@h", "--name", "token", "abc", "-",
	}
	want := []string{
		"--token", Mark, "--token", Mark, "--token", "--next", "-u", "me:" + Mark, "--user=" + Mark, "-u", "1000", "--password=" + Mark,
		"-e", "TOKEN=" + Mark, "-H", "Authorization: " + Mark, "--api-key", Mark, "https://u:" + Mark + "@h", "--name", "token", "abc", "-",
	}
	if diff := cmp.Diff(want, Args(in)); diff != "" {
		t.Errorf("Args differs (-want +got):\n%s", diff)
	}
}

// Texts that would make a careless scanner quadratic take no longer than others.
func TestTextIsLinear(t *testing.T) {
	const size = 4 << 20
	for _, unit := range []string{"a", " ", "a ", "://", ":", "=", "token=", "token: ", `token="\"`, "--token ", "bearer ", `\"`, "a:\t", "x://u@"} {
		text := strings.Repeat(unit, size/len(unit))
		if got := Text(text); len(got) > 3*len(text)+len(Mark) {
			t.Errorf("Text of many %q has %d bytes, of %d", unit, len(got), len(text))
		}
	}
}

// FuzzText: a value that follows a secret's name in one of the common ways is
// removed, whatever the surrounding text.
func FuzzText(f *testing.F) {
	f.Add("curl -v ", " https://example.com", byte(0))
	f.Add("a=\"b\" ", "\n\"x\"", byte(3))
	f.Add("://", "@x", byte(5))
	forms := []string{"--token=%", "--token %", "password=%", "Authorization: Bearer %", `"api_key": "%"`, "https://u:%@h/", "X_SECRET='%'"}
	f.Fuzz(func(t *testing.T, before, after string, form byte) {
		const secret = "q7Zk2mWx9Tz4"
		if strings.Contains(before+after, secret) {
			t.Skip()
		}
		text := before + "\n" + strings.ReplaceAll(forms[int(form)%len(forms)], "%", secret) + "\n" + after
		// A quote that was open before includes the following text.
		if got := Text(text); strings.Contains(got, secret) {
			t.Errorf("Text(%q) = %q, want it without %q", text, got, secret)
		}
		Args(strings.Fields(before + after))
	})
}
