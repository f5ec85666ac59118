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

// A conformanceList is test/e2e/judges/conformance.yaml.
type conformanceList struct {
	// What the suite asks for by a name or URI of its own, and what the server
	// has in its place.
	Aliases map[string]*conformanceAlias             `yaml:"aliases"`
	Reasons map[string]string                        `yaml:"reasons"` // :: word → why a scenario does not apply
	Sets    map[string]map[string]*conformanceTarget `yaml:"sets"`    // :: set → scenario → what is expected
}

// A conformanceAlias is a tool or prompt with its arguments, a prompt and the
// argument to complete, or a resource.
type conformanceAlias struct {
	Name      string           `yaml:"name"`
	Arguments map[string]any   `yaml:"arguments"`
	Each      []map[string]any `yaml:"each"` // instead of Arguments: those of the first call, of the second …
	Argument  string           `yaml:"argument"`
	URI       string           `yaml:"uri"`

	Listed bool           `yaml:"listed"` // the tool has the suite's name in the list, too
	Person []string       `yaml:"person"` // what a person has the program do just before the call: its arguments
	Input  string         `yaml:"input"`  // what the suite calls the server's one question
	Answer map[string]any `yaml:"answer"` // what a person fills in when the suite has Input accepted

	used atomic.Int64 // how often a tool or prompt was asked for
}

// next returns the arguments of the next call.
func (a *conformanceAlias) next() map[string]any {
	n := int(a.used.Add(1))
	if len(a.Each) == 0 {
		return a.Arguments
	}
	return a.Each[min(n, len(a.Each))-1]
}

// A conformanceTarget is what is expected of one scenario. Exactly one of
// Checks, Not and Waits is there.
type conformanceTarget struct {
	Checks []string          `yaml:"checks"` // ids that have to be there, with success wherever they are
	Except map[string]string `yaml:"except"` // :: id of a check that is not judged → a word of reasons
	Not    string            `yaml:"not"`    // the scenario does not apply: a word of reasons
	Waits  string            `yaml:"waits"`  // it will apply: what is missing
}

// A conformanceCheck is one of a scenario's checks.json.
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

// Each scenario of the list says one thing, and gives a reason that is there.
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

// tells reports whether a check says something of its scenario. The suite has
// one besides, that whatever was sent fits the protocol's schema.
func tells(id string) bool { return id != "wire-schema-valid" }

// A verdict is made of the checks that are named, and not of the suite's own.
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

// What the suite has and the list has not is a failure, and the other way round.
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

// checksOf reads "id STATUS", separated by commas.
func checksOf(text string) []conformanceCheck {
	var checks []conformanceCheck
	for check := range strings.SplitSeq(text, ",") {
		if id, status, ok := strings.Cut(check, " "); ok {
			checks = append(checks, conformanceCheck{ID: id, Status: status})
		}
	}
	return checks
}

// judge holds what the suite found against a set of the list, and returns what
// is not as expected.
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

// verdict returns what is not as expected of a scenario.
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

// problems are what keeps the checks of a scenario from being what is expected.
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

// passed are the ids of the checks with success, each once.
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
