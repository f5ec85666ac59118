package findings

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

const aHash = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// The parser and the published schema accept the same files.
func TestParsePolicy(t *testing.T) {
	src, err := os.ReadFile("../../../schemas/scan-policy.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(src)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, src string
		problem   string // empty: it is right
		beyond    bool   // a schema cannot express the problem
	}{
		{"empty", "", "", false},
		{"comments", "# nothing\n", "", false},
		{"all", "fail_on: medium\nrules:\n  tool-network: off\n  fetch-pipe: critical\naccept:\n  - hash: " + aHash + "\n    reason: We read it.\n", "", false},
		{"off in quotes", "rules: {tool-network: \"off\"}\n", "", false},
		{"empty sections", "rules:\naccept:\n", "", false},
		{"unknown key", "fail-on: high\n", `p.yaml:1: there is no key "fail-on"; did you mean "fail_on"?`, false},
		{"unknown rule", "rules:\n  fetch-pip: off\n", `p.yaml:2: there is no rule "fetch-pip"; did you mean "fetch-pipe"?`, true},
		{"unknown severity", "rules:\n  fetch-pipe: hihg\n", `p.yaml:2: fetch-pipe is "hihg"; want off, critical, high, medium, low or info`, false},
		{"fail on info", "fail_on: info\n", `p.yaml:1: fail_on is "info"; want critical, high, medium or low`, false},
		{"fail on a list", "fail_on: [high]\n", `p.yaml:1: fail_on is ""; want critical, high, medium or low`, false},
		{"no reason", "accept:\n  - hash: " + aHash + "\n", `p.yaml:2: an accepted finding has no reason; say why it is all right`, false},
		{"blank reason", "accept:\n  - hash: " + aHash + "\n    reason: \" \"\n", `p.yaml:3: reason is not a text`, false},
		{"no hash", "accept:\n  - reason: x\n", `p.yaml:2: an accepted finding has no hash`, false},
		{"short hash", "accept:\n  - {hash: \"sha256:12\", reason: x}\n", `p.yaml:2: hash is "sha256:12"; want sha256: and 64 digits, as the scan prints it`, false},
		{"a rule for all", "accept:\n  - {hash: " + aHash + ", reason: x, path: \"*\"}\n", `p.yaml:2: there is no key "path"; there are hash, reason`, false},
		{"twice", "accept:\n  - {hash: " + aHash + ", reason: x}\n  - {hash: " + aHash + ", reason: y}\n", `p.yaml:3: this hash is accepted twice`, true},
		{"a key twice", "fail_on: high\nfail_on: low\n", `p.yaml:2: "fail_on" occurs twice, or is not a word; the first is in line 1`, true},
		{"a list", "- fail_on\n", `p.yaml:1: the policy is not a mapping of keys to values`, false},
		{"accept all", "accept: all\n", `p.yaml:1: accept is not a list`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParsePolicy("p.yaml", []byte(test.src))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.problem {
				t.Errorf("got %q, want %q", got, test.problem)
			}
			var value any
			if yaml.Unmarshal([]byte(test.src), &value) != nil || test.beyond || value == nil {
				return
			}
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(instance); (err == nil) != (test.problem == "") {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

func TestBrokenPolicies(t *testing.T) {
	for _, src := range []string{"a: [", "fail_on: high\n---\nfail_on: low\n", "\xff", strings.Repeat("#", maxPolicy+1), "rules: &a\n  <<: *a\n"} {
		if p, err := ParsePolicy("p.yaml", []byte(src)); err == nil {
			t.Errorf("ParsePolicy(%.20q) = %v, want an error", src, p)
		}
	}
}

func TestApply(t *testing.T) {
	finding := func(rule string, s Severity, hash string) Finding {
		return Finding{Rule: rule, Severity: s, Hash: hash}
	}
	reports := []Report{{Findings: []Finding{finding("fetch-pipe", High, "a"), finding("tool-network", Info, "b"), finding("miner", Critical, "c"), finding("tls-off", Medium, "d")}}}
	p := &Policy{
		Rules: map[string]Severity{"fetch-pipe": Low, "tls-off": Critical}, Off: map[string]bool{"tool-network": true},
		Accept: []Acceptance{{"c", "a test"}, {"gone", "was"}},
	}
	unused := p.Apply(reports)
	accepted := finding("miner", Critical, "c")
	accepted.Accepted = "a test"
	want := []Finding{accepted, finding("tls-off", Critical, "d"), finding("fetch-pipe", Low, "a")}
	if diff := cmp.Diff(want, reports[0].Findings); diff != "" {
		t.Errorf("findings differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Acceptance{{"gone", "was"}}, unused); diff != "" {
		t.Errorf("unused acceptances differ (-want +got):\n%s", diff)
	}
	for on, want := range map[Severity]int{Critical: 1, High: 1, Low: 2} {
		if got := Fails(reports, on); got != want {
			t.Errorf("Fails(%s) = %d, want %d", on, got, want)
		}
	}
}
