package e2e_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// A conformanceList is the content of test/e2e/judges/conformance.yaml.
type conformanceList struct {
	// Aliases map the suite's names and URIs to the server's.
	Aliases map[string]*conformanceAlias             `yaml:"aliases"`
	Reasons map[string]string                        `yaml:"reasons"` // :: word → why a scenario does not apply
	Sets    map[string]map[string]*conformanceTarget `yaml:"sets"`    // :: set → scenario → what is expected
}

// A conformanceAlias is a tool or prompt with its arguments, a prompt with the argument to
// complete, or a resource.
type conformanceAlias struct {
	Name      string           `yaml:"name"`
	Arguments map[string]any   `yaml:"arguments"`
	Each      []map[string]any `yaml:"each"` // instead of Arguments: those of the first call, of the second …
	Argument  string           `yaml:"argument"`
	URI       string           `yaml:"uri"`

	Listed bool           `yaml:"listed"` // the list also shows the tool by the suite's name
	Person []string       `yaml:"person"` // arguments of the command that a person runs just before the call
	Input  string         `yaml:"input"`  // the suite's name for the server's only question
	Answer map[string]any `yaml:"answer"` // what a person fills in when the suite accepts Input

	used atomic.Int64 // how often a tool or prompt was requested
}

// next returns the arguments of the next call.
func (a *conformanceAlias) next() map[string]any {
	n := int(a.used.Add(1))
	if len(a.Each) == 0 {
		return a.Arguments
	}
	return a.Each[min(n, len(a.Each))-1]
}

// A conformanceTarget is the expectation for one scenario. It has exactly one of Checks, Not
// and Waits.
type conformanceTarget struct {
	Checks []string          `yaml:"checks"` // ids that must occur and always succeed
	Except map[string]string `yaml:"except"` // :: id of a check that is ignored → a key of reasons
	Not    string            `yaml:"not"`    // the scenario does not apply: a key of reasons
	Waits  string            `yaml:"waits"`  // it will apply later: what is missing
}

// A conformanceCheck is an entry of a scenario's checks.json.
type conformanceCheck struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	ErrorMessage string `json:"errorMessage"`
}

func readConformanceList(t *testing.T) *conformanceList {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("judges", "conformance.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	list := new(conformanceList)
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(list); err != nil {
		t.Fatal(err)
	}
	return list
}

// Each scenario in the list has one expectation and an existing reason.
func TestConformanceList(t *testing.T) {
	list := readConformanceList(t)
	used := make(map[string]bool)
	for set, scenarios := range list.Sets {
		for name, target := range scenarios {
			said := 0
			for _, is := range []bool{len(target.Checks) > 0, target.Not != "", target.Waits != ""} {
				if is {
					said++
				}
			}
			if said != 1 {
				t.Errorf("%s %s says %d things, want one of checks, not and waits", set, name, said)
			}
			if len(target.Checks) > 0 && !slices.ContainsFunc(target.Checks, tells) {
				t.Errorf("%s %s has no check of its own", set, name)
			}
			for _, word := range append(slices.Collect(maps.Values(target.Except)), target.Not) {
				if word != "" && list.Reasons[word] == "" {
					t.Errorf("%s %s gives the reason %q, which is not there", set, name, word)
				}
				used[word] = true
			}
		}
	}
	for word := range list.Reasons {
		if !used[word] {
			t.Errorf("nothing has the reason %q", word)
		}
	}
}

// tells reports whether a check says something about its scenario. The suite adds another
// one, that all messages fit the protocol's schema.
func tells(id string) bool { return id != "wire-schema-valid" }

// A verdict depends on the named checks, not on the suite's verdict.
func TestConformanceVerdict(t *testing.T) {
	listed := &conformanceTarget{Checks: []string{"a", "b"}, Except: map[string]string{"x": "why"}}
	waits := &conformanceTarget{Waits: "something"}
	not := &conformanceTarget{Not: "why"}
	for _, tc := range []struct {
		name   string
		target *conformanceTarget
		checks string // as "id STATUS", separated by commas
		want   []string
	}{
		{"all there", listed, "a SUCCESS,b SUCCESS", nil},
		{"more than that", listed, "a SUCCESS,b SUCCESS,c SUCCESS,d INFO,e SKIPPED", nil},
		{"excepted", listed, "a SUCCESS,b SUCCESS,x FAILURE", nil},
		{"excepted, and right one of its times", listed, "a SUCCESS,b SUCCESS,x FAILURE,x SUCCESS", nil},
		{"excepted without need", listed, "a SUCCESS,b SUCCESS,x SUCCESS", []string{`x is excepted for "why", and passes`}},
		{"nothing was checked", listed, "wire-schema-valid SUCCESS", []string{"a was not checked", "b was not checked"}},
		{"was not run", listed, "", []string{"the suite did not run it"}},
		{"one is missing", listed, "a SUCCESS", []string{"b was not checked"}},
		{"one was skipped", listed, "a SUCCESS,b SKIPPED", []string{"b SKIPPED: ", "b was not checked"}},
		{"one failed one of its times", listed, "a SUCCESS,b SUCCESS,a FAILURE", []string{"a FAILURE: "}},
		{"another one failed", listed, "a SUCCESS,b SUCCESS,c WARNING", []string{"c WARNING: "}},
		{"a status that nobody knows", listed, "a SUCCESS,b SUCCESS,c PERHAPS", []string{"c PERHAPS: "}},
		{"waits", waits, "a FAILURE,wire-schema-valid SUCCESS", nil},
		{"waits, and was skipped", waits, "a SKIPPED,wire-schema-valid SUCCESS", nil},
		{"need not wait any more", waits, "a SUCCESS,wire-schema-valid SUCCESS", []string{`waits for "something", and passes: list its checks [a wire-schema-valid]`}},
		{"does not apply", not, "a FAILURE,b SUCCESS", nil},
		{"does not apply, and checks nothing", not, "a INFO,wire-schema-valid SUCCESS", nil},
		{"applies", not, "a SUCCESS,b INFO", []string{`does not apply for "why", and passes: list its checks [a]`}},
		{"does not apply, and was not run", not, "", []string{"the suite did not run it"}},
	} {
		if diff := cmp.Diff(tc.want, tc.target.verdict(checksOf(tc.checks))); diff != "" {
			t.Errorf("%s: verdict(%s) (-want +got):\n%s", tc.name, tc.checks, diff)
		}
	}
}

// A scenario that only the suite or only the list has is a failure.
func TestConformanceJudge(t *testing.T) {
	list := &conformanceList{Sets: map[string]map[string]*conformanceTarget{"set": {
		"good": {Checks: []string{"a"}}, "bad": {Checks: []string{"a"}}, "gone": {Not: "why"},
	}}}
	found := map[string][]conformanceCheck{"good": checksOf("a SUCCESS"), "bad": checksOf("a FAILURE"), "new": checksOf("n SUCCESS")}
	want := []string{"bad: a FAILURE: ", "bad: a was not checked", "gone: the suite did not run it", "new is not on the list; its checks: [n]"}
	if diff := cmp.Diff(want, list.judge("set", found)); diff != "" {
		t.Errorf("judge() (-want +got):\n%s", diff)
	}
}

// checksOf parses "id STATUS", separated by commas.
func checksOf(text string) []conformanceCheck {
	var checks []conformanceCheck
	for check := range strings.SplitSeq(text, ",") {
		if id, status, ok := strings.Cut(check, " "); ok {
			checks = append(checks, conformanceCheck{ID: id, Status: status})
		}
	}
	return checks
}

// judge compares the suite's results with a set of the list, and returns what differs.
func (list *conformanceList) judge(set string, found map[string][]conformanceCheck) []string {
	var all []string
	targets := list.Sets[set]
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		for _, problem := range targets[name].verdict(found[name]) {
			all = append(all, name+": "+problem)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if targets[name] == nil {
			all = append(all, fmt.Sprintf("%s is not on the list; its checks: %v", name, passed(found[name])))
		}
	}
	return all
}

// verdict returns what differs from the expectation for a scenario.
func (target *conformanceTarget) verdict(checks []conformanceCheck) []string {
	problems := target.problems(checks)
	passes := len(problems) == 0 && slices.ContainsFunc(passed(checks), tells)
	switch {
	case len(checks) == 0:
		return []string{"the suite did not run it"}
	case target.Not != "" && passes:
		return []string{fmt.Sprintf("does not apply for %q, and passes: list its checks %v", target.Not, passed(checks))}
	case target.Waits != "" && passes:
		return []string{fmt.Sprintf("waits for %q, and passes: list its checks %v", target.Waits, passed(checks))}
	case target.Not != "" || target.Waits != "":
		return nil
	}
	return problems
}

// problems returns why the checks of a scenario differ from the expectation.
func (target *conformanceTarget) problems(checks []conformanceCheck) []string {
	var all []string
	status := make(map[string]map[string]bool) // :: id → statuses
	for _, c := range checks {
		if status[c.ID] == nil {
			status[c.ID] = make(map[string]bool)
		}
		status[c.ID][c.Status] = true
		_, excepted := target.Except[c.ID]
		switch c.Status {
		case "SUCCESS":
			continue
		case "INFO", "SKIPPED": // it has checked nothing
			if !slices.Contains(target.Checks, c.ID) && (c.Status == "INFO" || len(target.Checks) > 0) {
				continue
			}
		default:
			if excepted {
				continue
			}
		}
		all = append(all, fmt.Sprintf("%s %s: %s", c.ID, c.Status, c.ErrorMessage))
	}
	for _, id := range target.Checks {
		if !status[id]["SUCCESS"] {
			all = append(all, id+" was not checked")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(target.Except)) {
		if len(status[id]) == 1 && status[id]["SUCCESS"] {
			all = append(all, fmt.Sprintf("%s is excepted for %q, and passes", id, target.Except[id]))
		}
	}
	return all
}

// passed returns the ids of successful checks, each once.
func passed(checks []conformanceCheck) []string {
	var all []string
	for _, c := range checks {
		if c.Status == "SUCCESS" {
			all = append(all, c.ID)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// tally says how many scenarios of a set are judged.
func (list *conformanceList) tally(set string) string {
	var applied, not, waits int
	for _, target := range list.Sets[set] {
		switch {
		case target.Not != "":
			not++
		case target.Waits != "":
			waits++
		default:
			applied++
		}
	}
	return fmt.Sprintf("%d scenarios apply, %d do not, %d wait for something", applied, not, waits)
}
