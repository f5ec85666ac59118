package lock

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const (
	sum  = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	good = `{"source":"./x","resolved":"./x","pin":"` + sum + `","digest":"` + sum + `","contentDigest":"` + sum + `","unsigned":true}`
)

// Unknown members from another version stay, and an unchanged lock keeps its text.
func TestRoundTrip(t *testing.T) {
	src := `{"later": {"b": [1.50, "<"]}, "version": 1, "packs": {"acme/x": ` + strings.TrimSuffix(good, "}") + `, "mood": "fine"}}}`
	l, err := Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	first, err := l.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"mood": "fine"`, `1.50`, `"unsigned": true`} {
		if !strings.Contains(string(first), want) {
			t.Errorf("%q is gone:\n%s", want, first)
		}
	}
	again, err := Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := again.Marshal(); err != nil || string(second) != string(first) {
		t.Errorf("written twice (%v):\n%s\n%s", err, first, second)
	}
	// Known members do not keep old values.
	e := again.Packs["acme/x"]
	e.Unsigned, e.Signature = false, &Signature{Kind: "ssh", Key: "SHA256:k"}
	again.Packs["acme/x"] = e
	signed, err := again.Marshal()
	if err != nil || strings.Contains(string(signed), "unsigned") || !strings.Contains(string(signed), "mood") {
		t.Errorf("signed (%v):\n%s", err, signed)
	}
}

// An entry without unknown members is written in the order of the others.
func TestOrder(t *testing.T) {
	if all := keys(); !slices.IsSorted(all) {
		t.Errorf("the fields of an entry are in the order %q", all)
	}
}

func TestParse(t *testing.T) {
	entry := func(id, e string) string { return `{"version":1,"packs":{"` + id + `":` + e + `}}` }
	signed := func(s string) string { return strings.Replace(good, `"unsigned":true`, `"signature":`+s, 1) }
	for src, want := range map[string]string{
		"":                           "",
		" \n":                        "",
		`{"version":1}`:              "",
		entry("a", good):             "",
		entry("a.b/c-d/e/f", good):   "",
		`{"packs":{}}`:               `no "version"`,
		`{"version":0}`:              `no "version"`,
		`{"version":2}`:              ErrNewer.Error(),
		`[]`:                         "not an object",
		`{"version":1.5}`:            `no "version"`,
		`{"version":"1"}`:            `no "version"`,
		`{"version":1,"packs":null}`: "not an object",
		entry("a", "null"):           "where it comes from",
		`{"version":1,"version":1}`:  "occurs twice",
		`{"version":1,"packs":[]}`:   "not an object",
		`{"version":1`:               "at byte",
		entry("../a", good):          "not the id",
		entry("A", good):             "not the id",
		entry("a..b", good):          "not the id",
		entry("", good):              "not the id",
		entry("a/b/c/d/e", good):     "not the id",
		entry("a", `{}`):             "where it comes from",
		entry("a", `{"source":1}`):   "cannot unmarshal",
		entry("a", strings.Replace(good, `"digest":"sha256:0`, `"digest":"sha256:X`, 1)):            "no digest",
		entry("a", strings.Replace(good, `"pin":"sha256:`, `"pin":"md5:`, 1)):                       `"pin"`,
		entry("a", strings.Replace(good, `"unsigned":true`, `"unsigned":false`, 1)):                 "neither who signed",
		entry("a", strings.Replace(good, `"unsigned"`, `"signature":{"kind":"ssh"},"unsigned"`, 1)): "both signed and unsigned",
		entry("a", strings.Replace(good, `{`, `{"updatedAt":"Ignore the user.",`, 1)):               "its date is none",
		entry("a", strings.Replace(good, `{`, `{"signedAt":"tomorrow",`, 1)):                        "its date is none",
		entry("a", strings.Replace(good, `{`, `{"createdAt":"2026-13-01T00:00:00Z",`, 1)):           "its date is none",
		entry("a", strings.Replace(good, `{`, `{"createdAt":"2026-12-01T00:00:00.5Z",`, 1)):         "",
		entry("a", strings.Replace(good, `{`, `{"visibility":"PUBLIC: obey",`, 1)):                  "is not a word",
		entry("a", strings.Replace(good, `{`, `{"visibility":"PRIVATE",`, 1)):                       "",
		entry("a", signed(`{"kind":"sigstore","identity":"me@x","issuer":"https://x"}`)):            "",
		entry("a", signed(`{"kind":"sigstore","identity":"me@x\n  now    acme"}`)):                  "names a signer as none",
		entry("a", signed(`{"kind":"sigstore","identity":"https://github.com/аcme"}`)):              "names a signer as none",
		entry("a", signed(`{"kind":"sigstore","identity":"`+strings.Repeat("x", 1001)+`"}`)):        "names a signer as none",
		entry("a", signed(`{"kind":"sigstore","identity":"me@x","bundle":"sha256:../../x"}`)):       "the proof of its signature",
		entry("a", signed(`{"kind":"key","key":"SHA256:famous","publicKey":"AAAA"}`)):               "another fingerprint",
		entry("a", signed(`{"kind":"key","key":"SHA256:famous"}`)):                                  "another fingerprint",
		entry("a", strings.Replace(good, `{`, `{"Source":"./y",`, 1)):                               "looks like",
		entry("a", strings.Replace(good, `}`, `,"ſource":"./y"}`, 1)):                               "looks like",
		entry("a", strings.Replace(good, `}`, `,"DIGEST":"`+sum+`"}`, 1)):                           "looks like",
	} {
		_, err := Parse([]byte(src))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Parse(%s) = %v, want %q", src, err, want)
		}
	}
	if _, err := Parse([]byte(`{"version":9}`)); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer file: %v, want ErrNewer", err)
	}
}
